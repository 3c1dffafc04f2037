-- queue_event: the name to LISTEN to for this queue's wake-ups. It cannot be guessed: LISTEN and NOTIFY need no rights, and
-- outsiders must neither wake workers nor learn when there is work.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_event() returns text
language sql stable security definer
set search_path from current
as $$
  select 'lonnymq_' || encode(substr(sha256('event' || s.salt), 1, 12), 'hex') from setting s where s.is_only
$$;
