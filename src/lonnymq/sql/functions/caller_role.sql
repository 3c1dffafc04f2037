-- caller_role: the role that called: the one it has set, or else the one that logged in. Functions that run as the queue's
-- owner see the owner as current_user. A role can set only roles that it is a member of.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function caller_role() returns text
language sql stable
as $$
  select coalesce(nullif(current_setting('role'), 'none'), session_user)
$$;
