-- message_late_and_next: up to p_limit messages of a turn, in order: first those of its late range, below the mark,
-- then those above the mark. Inlined into the statements that call it.
-- Reads:  message, lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_late_and_next(p_allocation turn_allocation, p_limit bigint, p_now bigint)
returns table (id bigint, dequeue_at bigint, tid tid, is_late boolean, wait_ms float8)
language sql stable
as $$
  select * from (
    (
      select l.id, l.dequeue_at, l.tid, true, l.wait_ms
      from message_late(p_allocation.channel_id, p_allocation.late_at, p_allocation.late_id, p_allocation.late_to,
        p_allocation.late_to_id, p_allocation.mark_at, p_allocation.mark_id,
        case when p_allocation.late_at is not null then p_limit else 0 end, p_now) l
    )
    union all
    (select * from message_next(p_allocation.channel_id, p_allocation.mark_at, p_allocation.mark_id, p_limit, p_now))
  ) a
  limit p_limit
$$;
