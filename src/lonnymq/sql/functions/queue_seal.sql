-- queue_seal: revoke every privilege of roles other than the owner on the queue's schema, functions, tables, views,
-- sequences and types that queue_grant did not give, such as those of PUBLIC and those from default privileges of the
-- owner. A role that may use a type could make a table of it, and so prevent later versions from changing the type.
-- p_names are the queue's functions and relations; partitions and sequences belong to their tables. p_known are objects
-- that existed before this migration: on these, roles keep what queue_grant could have given them. All other objects
-- are new, so nobody has been granted anything on them yet.
-- Locks:  nothing.
-- Writes: privileges.
create or replace function queue_seal(p_names text[], p_known text[]) returns void
language plpgsql
set search_path from current
as $$
declare
  v_schema constant oid := (select c.relnamespace from pg_class c where c.oid = 'turn'::regclass);
  v_revoke text;
begin
  for v_revoke in
    with relations as (
      select c.oid, c.relname, c.relkind, c.relacl, c.relowner
      from pg_class c
      where c.relnamespace = v_schema and c.relkind in ('r', 'p', 'v', 'S') and (c.relname = any(p_names)
        or exists (
          select from pg_inherits i join pg_class t on t.oid = i.inhparent
          where i.inhrelid = c.oid and t.relnamespace = v_schema and t.relname = any(p_names)
        )
        or exists (
          select from pg_depend d join pg_class t on t.oid = d.refobjid
          where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_class'::regclass
            and c.relkind = 'S'
            and t.relnamespace = v_schema and t.relname = any(p_names)
        ))
    ),
    objects as (
      select 'n' || n.oid as id, '' as name, 'schema ' || n.oid::regnamespace as object, null as "column",
        n.nspacl as acl, n.nspowner as owner
      from pg_namespace n where n.oid = v_schema
      union all
      select 'p' || p.oid, p.proname, 'routine ' || p.oid::regprocedure, null,
        coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner
      from pg_proc p where p.pronamespace = v_schema and p.proname = any(p_names)
      union all
      select 't' || t.oid, t.typname, 'type ' || t.oid::regtype, null,
        coalesce(t.typacl, acldefault('T', t.typowner)), t.typowner
      from pg_type t
      where t.typnamespace = v_schema and t.typtype = 'c'
        and (t.typname = any(p_names) or t.typrelid in (select r.oid from relations r))
      union all
      select 'c' || r.oid, r.relname, case r.relkind when 'S' then 'sequence ' else '' end || r.oid::regclass, null,
        r.relacl, r.relowner
      from relations r
      union all
      select 'c' || r.oid, r.relname, r.oid::regclass::text, a.attname, a.attacl, r.relowner
      from relations r
      join pg_attribute a on a.attrelid = r.oid and a.attacl is not null
    )
    select format('revoke %s %s on %s from %s cascade', a.privilege_type, '(' || quote_ident(o."column") || ')',
      o.object, case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end)
    from objects o
    cross join aclexplode(o.acl) a
    where a.grantee <> o.owner and not (
      a.grantee <> 0 and o.id = any(p_known) and (o.id like 'n%' and a.privilege_type = 'USAGE' or exists (
        select from kind_rights() k
        where o.name = any(k.names) and a.privilege_type = k.privilege
          and (k.columns is null and o."column" is null or o."column" = any(k.columns))
      ))
    )
  loop
    execute v_revoke;
  end loop;
end
$$;
