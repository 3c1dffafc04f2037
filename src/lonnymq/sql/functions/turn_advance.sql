-- turn_advance: the scheduling rules after messages were chosen: the turn as it is to be written. Pure; inlined into
-- the statements that call it.
-- p_given messages of the turn are leased. p_ids and p_ats hold these messages and the one that follows them; the first
-- p_late_count are from the late range. If the turn had no share (null or 0), its messages were not read.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_advance(
  p_allocation turn_allocation, p_ids bigint[], p_ats bigint[], p_late_count bigint, p_given integer, p_now bigint
) returns turn
language sql immutable
as $$
  select row(
    p_allocation.channel_id,
    null,
    -- next_at
    case
      when p_allocation.due_at is null then null
      -- A new channel that is still to be served.
      when p_allocation.is_returning and p_allocation.last_at = 0 and p_given = 0
        and coalesce(p_allocation.share, 0) = 0 and p_allocation.allowed > 0 and p_allocation.due_at <= p_now then null
      -- The cap is used up. The wake of a completion brings the turn back; leases that in_flight does not count send no
      -- wake, so look again in 200 ms.
      when p_allocation.cap_left <= p_given then case when p_allocation.has_uncapped then p_now + 200000 end
      when p_allocation.share > 0 and p_ats[p_given + 1] is null then null
      else greatest(
        case when p_allocation.share > 0 then p_ats[p_given + 1] * 1000 else p_allocation.due_at end,
        case when p_given > 0 then p_allocation.served_at end,
        -- Wait for the rate limit. A turn that was allowed a message and got none keeps its place.
        case when p_given > 0 or p_allocation.release_at - p_allocation.tolerance_us > p_now
          then p_allocation.release_at + p_given * p_allocation.interval_us - p_allocation.tolerance_us end
      )
    end,
    case when p_given > 0 then greatest(p_allocation.served_at, p_allocation.last_at) else p_allocation.last_at end,
    coalesce(p_allocation.release_at + p_given * p_allocation.interval_us, 0),
    -- The mark advances with the messages above it. The late range shrinks from its lower end, and ends when all of it
    -- was given.
    case when p_given > p_late_count then p_ats[p_given] else p_allocation.mark_at end,
    case when p_given > p_late_count then p_ids[p_given] else p_allocation.mark_id end,
    case when p_allocation.share > 0 and p_given >= p_late_count then null
      when p_given > 0 then p_ats[p_given] else p_allocation.late_at end,
    case when p_allocation.share > 0 and p_given >= p_late_count then null
      when p_given > 0 then p_ids[p_given] else p_allocation.late_id end,
    case when p_allocation.share > 0 and p_given >= p_late_count then null else p_allocation.late_to end,
    case when p_allocation.share > 0 and p_given >= p_late_count then null else p_allocation.late_to_id end,
    p_allocation.in_flight + case when p_allocation.cap_left is null then 0 else p_given end,
    p_allocation.waiting - p_given,
    p_allocation.has_uncapped or p_allocation.cap_left is null and p_given > 0,
    p_allocation.wake_id,
    case when p_allocation.share > 0
      then case when p_given = p_allocation.share then p_allocation.taken_after else 0 end
      else p_allocation.taken_before end,
    -- return_at
    case when p_allocation.is_returning and p_given = 0 and coalesce(p_allocation.share, 0) = 0
        and p_allocation.allowed > 0 and p_allocation.due_at <= p_now
      then p_allocation.due_at end,
    -- released and waited_ms, which the statement that writes the turn adds up.
    null,
    null
  )::turn
$$;
