-- message_peek_outline: message_peek without what a reader may not see: content, state and headers.
-- Returns a row for each message, in the same order.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_peek_outline(
  p_channel text default null, p_limit integer default 10, p_is_leased boolean default false
)
returns table (
  message_id bigint, channel text, key text, status text, dequeue_at bigint, created_at bigint, attempts integer,
  max_attempts integer, suspicion smallint, error text, worker text, leased_at bigint, unlock_at bigint,
  content_bytes integer
)
language sql stable security definer
set search_path from current
as $$
  select s.message_id, s.channel, s.key, s.status, s.dequeue_at, s.created_at, s.attempts, s.max_attempts, s.suspicion,
    s.error, s.worker, s.leased_at, s.unlock_at, s.content_bytes
  from message_peek(p_channel, p_limit, p_is_leased, 0) s
$$;
