-- queue_revoke: revoke everything that queue_grant gave to a role.
-- Locks:  nothing that a tenant's call locks.
-- Writes: privileges, tenant (delete).
create or replace function queue_revoke(p_role text) returns void
language plpgsql
set search_path from current
as $$
declare
  v_schema constant text := (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'turn'::regclass);
begin
  if not exists (select from pg_roles r where r.rolname = p_role) then
    perform reject('role', quote_literal(p_role), 'the name of an existing role');
  end if;
  delete from tenant t where t.role = (select r.oid from pg_roles r where r.rolname = p_role);
  execute format('revoke all on all functions in schema %I from %I', v_schema, p_role);
  execute format('revoke all on all tables in schema %I from %I', v_schema, p_role);
  execute format('revoke all on schema %I from %I', v_schema, p_role);
end
$$;
