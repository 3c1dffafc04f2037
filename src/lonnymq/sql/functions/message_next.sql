-- message_next: up to p_limit messages of a channel above the mark, in order. Inlined into the statements that call
-- it.
-- Reads:  message.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_next(
  p_channel_id bigint, p_mark_at bigint, p_mark_id bigint, p_limit bigint, p_now bigint
) returns table (id bigint, dequeue_at bigint, tid tid, is_late boolean, wait_ms float8)
language sql stable
as $$
  select m.id, m.dequeue_at, m.ctid, false,
    message_wait(m.dequeue_at, m.created_at, p_now)
  from message m
  where m.channel_id = p_channel_id and (m.dequeue_at, m.id + 0) > (p_mark_at, p_mark_id)
  order by m.channel_id, m.dequeue_at, m.id + 0
  limit p_limit
$$;
