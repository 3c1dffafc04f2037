-- queue_grant: let a role use this queue as a 'producer' (create messages and crons; cancel by id or key), a 'worker'
-- (dequeue and acknowledge; tick crons), an 'operator' (everything except installation), or a 'reader' (views and
-- figures without contents); see kind_rights. Or as a 'tenant', confined to p_channels and to channels that begin with
-- p_prefix, of which it can use p_max_channels; see tenant_confine.
-- Locks:  nothing.
-- Writes: privileges, tenant.
create or replace function queue_grant(
  p_role text, p_kind text, p_channels text[] default null, p_prefix text default null,
  p_max_channels integer default null
) returns void
language plpgsql
set search_path from current
as $$
declare
  v_role constant oid := (select r.oid from pg_roles r where r.rolname = p_role);
begin
  if v_role is null then
    perform reject('role', quote_literal(p_role), 'the name of an existing role');
  elsif p_kind is null or not exists (select from kind_rights() k where k.kind = p_kind) then
    perform reject('kind', quote_literal(p_kind), '''producer'', ''worker'', ''operator'', ''reader'' or ''tenant''');
  elsif p_kind = 'tenant' then
    perform tenant_confine(v_role, p_channels, p_prefix, p_max_channels);
  elsif p_channels is not null or p_prefix is not null or p_max_channels is not null then
    perform reject('kind', quote_literal(p_kind), '''tenant'' if channels, a prefix or max_channels are given');
  elsif exists (select from tenant t where t.role = v_role) then
    perform reject('kind', quote_literal(p_kind),
      '''tenant'', because the role is confined to channels; queue_revoke ends that');
  end if;
  perform kind_grant(p_role, p_kind);
end
$$;
