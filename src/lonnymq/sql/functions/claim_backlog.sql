-- claim_backlog: how many messages are due, for a consumer that takes what is there now and then stops.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function claim_backlog() returns bigint
language sql stable security definer
set search_path from current
as $$
  select count(*) from message m
  where m.dequeue_at <= floor(extract(epoch from clock_timestamp()) * 1000) or m.dequeue_at <= m.created_at
$$;
