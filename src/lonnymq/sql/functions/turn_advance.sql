-- turn_advance: the scheduling rules after messages are chosen: the turn as it is to be written. Pure; inlined into the
-- statements that call it.
-- p_given messages of the turn are leased. p_ids and p_ats are theirs, and those of the message that comes next; the first
-- p_late_count are from the late range. If the turn had no share (null or 0), nobody has looked for messages.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_advance(
  s turn_plan, p_ids bigint[], p_ats bigint[], p_late_count bigint, p_given integer, p_now bigint
) returns turn
language sql immutable
as $$
  select row(
    s.channel_id,
    null,
    -- next_at
    case
      when s.due_at is null then null
      -- Full: a completion's wake brings the turn back, except for leases that do not count: ask again in 200 ms.
      when s.free <= p_given then case when s.has_uncapped then p_now + 200000 end
      when s.share > 0 and p_ats[p_given + 1] is null then null
      else greatest(
        case when s.share > 0 then p_ats[p_given + 1] * 1000 else s.due_at end,
        case when p_given > 0 then s.served_at end,
        -- A turn that could have had a message and had none keeps its place.
        case when p_given > 0 or s.release_at - s.spare_us > p_now
          then s.release_at + p_given * s.interval_us - s.spare_us end
      )
    end,
    case when p_given > 0 then greatest(s.served_at, s.last_at) else s.last_at end,
    coalesce(s.release_at + p_given * s.interval_us, 0),
    -- The mark moves on with messages past it; the late range shrinks from below, and ends when all of it was given.
    case when p_given > p_late_count then p_ats[p_given] else s.mark_at end,
    case when p_given > p_late_count then p_ids[p_given] else s.mark_id end,
    case when s.share > 0 and p_given >= p_late_count then null when p_given > 0 then p_ats[p_given] else s.late_at end,
    case when s.share > 0 and p_given >= p_late_count then null when p_given > 0 then p_ids[p_given] else s.late_id end,
    case when s.share > 0 and p_given >= p_late_count then null else s.late_to end,
    case when s.share > 0 and p_given >= p_late_count then null else s.late_to_id end,
    s.in_flight + case when s.free is null then 0 else p_given end,
    s.waiting - p_given,
    s.has_uncapped or s.free is null and p_given > 0,
    s.wake_id,
    case when s.share > 0 then case when p_given = s.share then s.taken else 0 end else s.had end
  )::turn
$$;
