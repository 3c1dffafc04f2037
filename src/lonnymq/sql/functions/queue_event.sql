-- queue_event: the name to LISTEN to for this queue's wake-ups.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_event() returns text
language sql stable
set search_path from current
as $$
  select 'lonnymq_' || 'turn'::regclass::oid
$$;
