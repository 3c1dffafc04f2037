-- message_late_and_next: up to p_limit messages of a turn, in order: first those of its late range, below the mark, then
-- those past the mark. Inlined into the statements that call it.
-- Reads:  message, lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_late_and_next(s turn_plan, p_limit bigint)
returns table (id bigint, dequeue_at bigint, tid tid, is_late boolean)
language sql stable
as $$
  select * from (
    (
      select l.id, l.dequeue_at, l.tid, true
      from message_late(s.channel_id, s.late_at, s.late_id, s.late_to, s.late_to_id, s.mark_at, s.mark_id,
        case when s.late_at is not null then p_limit else 0 end) l
    )
    union all
    (select * from message_next(s.channel_id, s.mark_at, s.mark_id, p_limit))
  ) a
  limit p_limit
$$;
