-- tenant_role: the role that counts as the tenant: the one that called (see caller_role), exactly: not one that it is a
-- member of, so a login that may SET ROLE to all tenants is none of them until it does. Null if the session could not
-- set that role now: after SET ROLE, the role may have been renamed, and its name given to another, or the membership
-- revoked.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_role() returns oid
language sql stable
as $$
  select case when pg_has_role(session_user, caller_role(), 'member')
    then to_regrole(quote_ident(caller_role()))::oid end
$$;
