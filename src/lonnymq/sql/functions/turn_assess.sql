-- turn_assess: the scheduling rules before messages are chosen: add a turn's wakes to it, and say what the channel's policy
-- allows it now. Pure; inlined into the statements that call it.
-- Returns, beside the turn:
--   due_at  since when the turn has been waiting; null if the channel is paused
--   free    how many more messages its cap allows; null without a cap
--   room    how many its cap and its rate limit allow now
-- p_uncapped: how many leases of the channel do not count towards its cap, because they are older than the cap.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_assess(p_tid tid, t turn, c channel, k wake_total, p_uncapped bigint, p_now bigint)
returns turn_state
language sql immutable
as $$
  select row(
    p_tid,
    t.channel_id,
    -- due_at. A stamp from the future was made before the clock was set back.
    case when c.is_paused is not true then greatest(least(t.last_at, p_now), least(
      case when t.last_at > p_now then least(t.next_at, p_now) else t.next_at end,
      k.due_at * 1000,
      case when k.looks > 0 then least(t.last_at, p_now) end
    )) end,
    least(t.last_at, p_now),
    turn_release_at(t.release_at, t.last_at, c.release_burst * c.release_interval_ms * 1000, p_now),
    t.mark_at,
    t.mark_id,
    -- The late range grows by messages that woke below the mark.
    case when k.is_late then least(t.late_at, k.at) else t.late_at end,
    case when k.is_late then least(t.late_id, k.first_id - 1) else t.late_id end,
    case when k.is_late then greatest(t.late_to, k.to_at) else t.late_to end,
    case when k.is_late then greatest(t.late_to_id, k.to_id) else t.late_to_id end,
    t.in_flight - k.done,
    t.waiting + k.waiting,
    p_uncapped > 0 or c.max_concurrency is null and t.has_uncapped,
    greatest(t.wake_id, k.last_id),
    t.taken,
    coalesce(c.name, k.channel_name),
    coalesce(c.weight, 1),
    c.max_attempts,
    c.release_interval_ms * 1000,
    (c.release_burst - 1) * c.release_interval_ms * 1000,
    -- free
    c.max_concurrency - (t.in_flight - k.done) - p_uncapped,
    -- room. Under a rate limit: the intervals between the next evenly spaced release, less a burst, and now.
    greatest(0, least(
      c.max_concurrency - (t.in_flight - k.done) - p_uncapped,
      (p_now + c.release_burst * c.release_interval_ms * 1000
        - turn_release_at(t.release_at, t.last_at, c.release_burst * c.release_interval_ms * 1000, p_now))
        / (c.release_interval_ms * 1000),
      2147483647
    )),
    c.name is null,
    k.wakes
  )::turn_state
$$;
