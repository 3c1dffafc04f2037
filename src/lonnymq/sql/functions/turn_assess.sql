-- turn_assess: the scheduling rules before messages are chosen: add a turn's wakes to it, and compute what the
-- channel's policy allows now. Pure; inlined into the statements that call it.
-- p_uncapped: how many leases of the channel in_flight does not count (see lease_count_uncapped). p_quantum: how many
-- messages a turn is worth at weight 1.
-- Returns the turn with, among others (see turn_state):
--   due_at    since when the turn has been due; null if the channel is paused
--   cap_left  how many more messages the cap allows; null without a cap
--   allowed   how many messages the cap and the rate limit allow now
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_assess(
  p_tid tid, p_turn turn, p_channel channel, p_wakes wake_total, p_uncapped bigint, p_quantum integer,
  p_now bigint
) returns turn_state
language sql immutable
as $$
  select row(
    p_tid,
    p_turn.channel_id,
    -- due_at. A channel that was idle, or is new, comes behind all others that are due, whatever the times of its
    -- messages are, but before those that this reply serves (see turn_share.served_at). A timestamp in the future is
    -- from before the clock was set back.
    case when p_channel.is_paused is not true then greatest(least(p_turn.last_at, p_now), least(
      case when p_turn.last_at > p_now then least(p_turn.next_at, p_now) else p_turn.next_at end,
      least(p_turn.return_at, p_now),
      case when turn_is_idle(p_turn, p_channel, p_now) then greatest(p_now - 1000, p_wakes.due_at * 1000)
        else p_wakes.due_at * 1000 end,
      case when p_wakes.look_requests > 0
        then case when turn_is_idle(p_turn, p_channel, p_now) then p_now - 1000
          else least(p_turn.last_at, p_now) end end
    )) end,
    least(p_turn.last_at, p_now),
    turn_release_at(p_turn.release_at, p_turn.last_at,
      p_channel.release_burst * p_channel.release_interval_ms * 1000, p_now),
    p_turn.mark_at,
    p_turn.mark_id,
    -- The late range grows by messages that were announced below the mark.
    case when p_wakes.is_late then least(p_turn.late_at, p_wakes.from_at) else p_turn.late_at end,
    case when p_wakes.is_late then least(p_turn.late_id, p_wakes.from_id - 1) else p_turn.late_id end,
    case when p_wakes.is_late then greatest(p_turn.late_to, p_wakes.to_at) else p_turn.late_to end,
    case when p_wakes.is_late then greatest(p_turn.late_to_id, p_wakes.to_id) else p_turn.late_to_id end,
    p_turn.in_flight - p_wakes.done,
    p_turn.waiting + p_wakes.waiting,
    p_uncapped > 0 or p_channel.max_concurrency is null and p_turn.has_uncapped,
    greatest(p_turn.wake_id, p_wakes.last_wake_id),
    p_turn.taken,
    p_turn.return_at is not null or (p_wakes.due_at * 1000 <= p_now and turn_is_idle(p_turn, p_channel, p_now)) is true,
    coalesce(p_channel.name, p_wakes.channel_name),
    coalesce(p_channel.weight, 1) * p_quantum,
    p_channel.max_attempts,
    p_channel.release_interval_ms * 1000,
    (p_channel.release_burst - 1) * p_channel.release_interval_ms * 1000,
    -- cap_left
    p_channel.max_concurrency - (p_turn.in_flight - p_wakes.done) - p_uncapped,
    -- allowed. The rate limit allows one message for each interval between the next evenly spaced release and a burst
    -- ahead of now.
    greatest(0, least(
      p_channel.max_concurrency - (p_turn.in_flight - p_wakes.done) - p_uncapped,
      (p_now + p_channel.release_burst * p_channel.release_interval_ms * 1000
        - turn_release_at(p_turn.release_at, p_turn.last_at,
          p_channel.release_burst * p_channel.release_interval_ms * 1000, p_now))
        / (p_channel.release_interval_ms * 1000),
      2147483647
    )),
    p_channel.name is null,
    p_wakes.wakes
  )::turn_state
$$;
