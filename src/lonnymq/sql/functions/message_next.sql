-- message_next: up to p_limit messages of a channel above the mark, in order. Inlined into the statements that call
-- it.
-- wait_ms: how long a message has been due, at most since it was created; null if it is not due at p_now.
-- Reads:  message.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_next(
  p_channel_id bigint, p_mark_at bigint, p_mark_id bigint, p_limit bigint, p_now bigint
) returns table (id bigint, dequeue_at bigint, tid tid, is_late boolean, wait_ms float8)
language sql stable
as $$
  select m.id, m.dequeue_at, m.ctid, false,
    case when m.dequeue_at * 1000 <= p_now then (p_now / 1000 - greatest(m.dequeue_at, m.created_at))::float8 end
  from message m
  where m.channel_id = p_channel_id and (m.dequeue_at, m.id + 0) > (p_mark_at, p_mark_id)
  order by m.channel_id, m.dequeue_at, m.id + 0
  limit p_limit
$$;
