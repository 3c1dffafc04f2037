-- queue_event: the notification channel to LISTEN on for this queue's wake-ups. The name cannot be guessed: LISTEN and
-- NOTIFY need no privileges, and outsiders must neither wake workers nor learn when there is work.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_event() returns text
language sql stable security definer
set search_path from current
as $$
  select queue_event_name(s.salt) from setting s where s.is_only
$$;
