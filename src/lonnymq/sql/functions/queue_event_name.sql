-- queue_event_name: the notification channel of a queue, from its salt. PostgreSQL inlines this function, which saves
-- the calls that notify the cost of calling queue_event.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_event_name(p_salt bytea) returns text
language sql stable
as $$
  select 'lonnymq_' || encode(substr(sha256('event' || p_salt), 1, 12), 'hex')
$$;
