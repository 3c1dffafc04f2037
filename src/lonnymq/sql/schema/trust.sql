-- trust: the owner and the objects of the schema that the setting lonnymq.schema names, and what could let other roles
-- run code there with the rights of the queue's owner:
-- - creators: roles that may create objects in the schema.
-- - unsafe_objects: objects of other roles, because PostgreSQL calls the best matching overload in search_path;
--   triggers, which have no owner and of which the queue has none; and keys, indexes, defaults, rules, policies and
--   statistics that use an object of another role.
-- Returns no row if there is no such schema.
select pg_get_userbyid(n.nspowner)::text as owner, o.rolsuper as owner_is_superuser, u.rolname::text as role,
  u.rolsuper as role_is_superuser,
  array(
    select distinct case a.grantee when 0 then 'PUBLIC' else pg_get_userbyid(a.grantee)::text end
    from aclexplode(n.nspacl) a
    where a.privilege_type = 'CREATE' and a.grantee <> n.nspowner
    order by 1 limit 100
  ) as creators,
  array(
    select s.stranger from (
      select format('%s of %s', pg_describe_object(h.classid, h.objid, 0), pg_get_userbyid(h.owner)) as stranger
      from (
        -- pg_shdepend has no entry for what the bootstrap superuser owns.
        select d.classid, d.objid, coalesce(s.refobjid, 10) as owner
        from pg_depend d
        left join pg_shdepend s on s.dbid = b.oid and s.classid = d.classid and s.objid = d.objid and s.objsubid = 0
          and s.deptype = 'o'
        where d.refclassid = 'pg_namespace'::regclass and d.refobjid = n.oid and d.classid <> 'pg_default_acl'::regclass
      ) h
      where h.owner <> n.nspowner
      union all
      select pg_describe_object('pg_trigger'::regclass, t.oid, 0)
      from pg_class c
      join pg_trigger t on t.tgrelid = c.oid and not t.tgisinternal
      where c.relnamespace = n.oid
      union
      select format('%s with %s of %s', pg_describe_object(d.classid, d.objid, 0),
        pg_describe_object(s.classid, s.objid, 0), f.rolname)
      from pg_class c
      join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid
      left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
      left join pg_class v on v.oid = r.ev_class
      join pg_depend e on e.classid = d.classid and e.objid = d.objid
      join pg_shdepend s on s.dbid = b.oid and s.classid = e.refclassid and s.objid = e.refobjid and s.deptype = 'o'
      join pg_roles f on f.oid = s.refobjid and f.oid <> n.nspowner and not f.rolsuper
      where c.relnamespace = n.oid and c.relowner = n.nspowner and (
        d.classid in ('pg_class'::regclass, 'pg_constraint'::regclass, 'pg_attrdef'::regclass, 'pg_policy'::regclass,
          'pg_statistic_ext'::regclass)
        -- A view of another role outside this schema does not affect the queue.
        or v.relnamespace = n.oid
      )
    ) s
    order by 1 limit 100
  ) as unsafe_objects,
  array(
    select pg_describe_object(d.classid, d.objid, 0) from pg_depend d
    where d.refclassid = 'pg_namespace'::regclass and d.refobjid = n.oid and d.classid <> 'pg_default_acl'::regclass
    order by 1 limit 100
  ) as objects
from pg_namespace n
join pg_roles o on o.oid = n.nspowner
join pg_roles u on u.rolname = current_user
join pg_database b on b.datname = current_database()
where n.nspname = current_setting('lonnymq.schema');
