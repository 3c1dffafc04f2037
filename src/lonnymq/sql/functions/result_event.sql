-- result_event: the notification channel to LISTEN on while waiting for results. Its name cannot be guessed, as that of
-- queue_event.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function result_event() returns text
language sql stable security definer
set search_path from current
as $$
  select 'lonnymq_' || encode(substr(sha256('result' || s.salt), 1, 12), 'hex') from setting s where s.is_only
$$;
