-- caller_role: the role that called: the one that SET ROLE has set, otherwise the one that logged in. current_user
-- would not do, because in functions that run with the rights of the queue's owner it is the owner. A role can only set
-- roles that it is a member of.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function caller_role() returns text
language sql stable
as $$
  select coalesce(nullif(current_setting('role'), 'none'), session_user)
$$;
