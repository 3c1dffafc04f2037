-- kind_grant: give a role the privileges of a kind (see kind_rights), as queue_grant does once it has checked them.
-- Locks:  nothing.
-- Writes: privileges.
create or replace function kind_grant(p_role text, p_kind text) returns void
language plpgsql
set search_path from current
as $$
declare
  v_schema constant oid := (select c.relnamespace from pg_class c where c.oid = 'turn'::regclass);
  v_grant text;
begin
  execute format('grant usage on schema %s to %I', v_schema::regnamespace, p_role);
  for v_grant in
    select format('grant execute on function %s to %I', p.oid::regprocedure, p_role)
    from kind_rights() k
    join pg_proc p on p.pronamespace = v_schema and p.proname = any(k.names)
    where k.kind = p_kind and k.privilege = 'EXECUTE'
    union all
    select format('grant %s %s on %s to %I', k.privilege,
      '(' || (select string_agg(quote_ident(u), ', ') from unnest(k.columns) u) || ')', c.oid::regclass, p_role)
    from kind_rights() k
    join pg_class c on c.relnamespace = v_schema and c.relname = any(k.names)
    where k.kind = p_kind and k.privilege <> 'EXECUTE'
  loop
    execute v_grant;
  end loop;
end
$$;
