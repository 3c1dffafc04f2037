-- existing_objects: before the functions and views are replaced, note the objects that exist: on these, roles keep
-- what queue_grant gave them (see queue_seal). Also note which kinds of queue_grant each role has, completely: it
-- gets what the new version adds to them (see grant_again.sql).
do $$
declare
  v_schema constant oid := (select n.oid from pg_namespace n where n.nspname = current_schema());
begin
  perform set_config('lonnymq.existing_objects', array(
    select 'n' || v_schema
    union all select 'c' || c.oid from pg_class c where c.relnamespace = v_schema
    union all select 'p' || p.oid from pg_proc p where p.pronamespace = v_schema
  )::text, true);
  perform set_config('lonnymq.existing_kinds', '[]', true);
  if not exists (select from pg_proc p where p.pronamespace = v_schema and p.proname = 'kind_rights') then
    return;
  end if;
  perform set_config('lonnymq.existing_kinds', coalesce((
    with wanted as (
      select k.kind, 'p' || p.oid as id, k.privilege, null as "column"
      from kind_rights() k
      join pg_proc p on p.pronamespace = v_schema and p.proname = any(k.names)
      where k.privilege = 'EXECUTE'
      union all
      select k.kind, 'c' || c.oid, k.privilege, u."column"
      from kind_rights() k
      join pg_class c on c.relnamespace = v_schema and c.relname = any(k.names)
      left join lateral unnest(k.columns) u("column") on true
      where k.privilege <> 'EXECUTE'
    ),
    held as (
      select 'p' || p.oid as id, a.privilege_type as privilege, null as "column", a.grantee
      from pg_proc p cross join aclexplode(p.proacl) a
      where p.pronamespace = v_schema and a.grantee not in (0, p.proowner)
      union all
      select 'c' || c.oid, a.privilege_type, null, a.grantee
      from pg_class c cross join aclexplode(c.relacl) a
      where c.relnamespace = v_schema and a.grantee not in (0, c.relowner)
      union all
      select 'c' || c.oid, a.privilege_type, t.attname, a.grantee
      from pg_class c join pg_attribute t on t.attrelid = c.oid cross join aclexplode(t.attacl) a
      where c.relnamespace = v_schema and a.grantee not in (0, c.relowner)
    )
    select jsonb_agg(jsonb_build_object('role', pg_get_userbyid(c.grantee), 'kind', c.kind))
    from (
      select h.grantee, w.kind
      from (select distinct grantee from held) h
      cross join wanted w
      group by h.grantee, w.kind
      having bool_and(exists (
        select from held x
        where x.grantee = h.grantee and x.id = w.id and x.privilege = w.privilege
          and x."column" is not distinct from w."column"
      ))
    ) c
  )::text, '[]'), true);
end
$$;
