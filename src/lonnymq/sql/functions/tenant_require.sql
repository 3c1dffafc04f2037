-- tenant_require: raise unless the calling tenant's grant covers a channel, whether the channel exists or not. SQLSTATE
-- 42501.
-- Returns the part of the grant that covers it.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_require(p_channel text) returns tenant
language plpgsql stable
as $$
declare
  v_grant tenant;
begin
  perform require_channel(p_channel);
  v_grant := tenant_covers(p_channel);
  if v_grant.role is null then
    raise exception using
      errcode = '42501',
      message = format('role %I is not a tenant with channel %L', caller_role(), left(p_channel, 100)),
      hint = 'Use a channel that queue_grant gave to this role, as this role (SET ROLE), not as a member of it.';
  end if;
  return v_grant;
end
$$;
