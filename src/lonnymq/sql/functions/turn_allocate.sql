-- turn_allocate: for a single turn that this transaction has locked in an earlier statement: add its wakes to it, and
-- decide how many of p_limit messages it may have. Part of message_dequeue, which then leases them and writes the turn.
-- This is the common case, and takes half the time of message_settle, without arrays and shares.
-- Returns null if the turn is gone or has a late range, which only message_settle serves.
-- A turn is plain if no rule has anything to decide: its channel has no cap, rate limit or weight and is not paused,
-- its wakes announce only messages, and the reply is not too short for a turn. Most turns are plain, and need not be
-- assessed.
-- Reads:  turn, wake, channel, lease.
-- Locks:  nothing more.
-- Writes: wake (delete); channel on first use.
create or replace function turn_allocate(
  p_turn tid, p_limit integer, p_row_bytes bigint, p_wake_id bigint, p_quantum integer, p_now bigint
) returns turn_allocation
language plpgsql
as $$
#variable_conflict use_column
declare
  v_turn turn;
  v_wakes wake_total := row(0, 0, null, null, null, null, null, false, 0, null, null, null);
  v_channel channel;
  v_allocation turn_allocation;
  v_is_plain boolean;
  v_uncapped bigint := 0;
begin
  select t.* into v_turn from turn t where t.ctid = p_turn;
  -- If the caller has found none, usually there are no wakes, and this check is cheaper than adding them up.
  if p_wake_id is not null or exists (
    select from wake w where w.channel_id = v_turn.channel_id and w.id >= least(v_turn.wake_id - 64, p_wake_id)
    order by w.id limit 1
  ) then
    select * into v_wakes from wake_total(v_turn, least(v_turn.wake_id - 64, p_wake_id), p_now);
  end if;
  if v_turn.channel_id is null or v_turn.late_at is not null or v_wakes.is_late then
    return null;
  end if;
  -- Read the policy after the wakes, so that it is no older than any change that they announce. None depends on the
  -- settings while the sequence of policy_change is unused.
  if pg_sequence_last_value('policy_change_id_seq') is null then
    select * into v_channel from channel c where c.id = v_turn.channel_id;
  else
    select c.id, c.name, c.created_at,
      -- effective policy: written by tools/policy.py
      nullif(coalesce(c.max_concurrency, s.max_concurrency), -1) as max_concurrency,
      nullif(coalesce(c.release_interval_ms, s.release_interval_ms), -1) as release_interval_ms,
      coalesce(c.release_burst, s.release_burst, 1) as release_burst,
      coalesce(c.weight, s.weight, 1) as weight,
      nullif(coalesce(c.max_size, s.max_size), -1) as max_size,
      nullif(coalesce(c.max_attempts, s.max_attempts), -1) as max_attempts,
      c.is_paused
      -- end of effective policy
    into v_channel
    from setting s left join channel c on c.id = v_turn.channel_id where s.is_only;
  end if;

  v_is_plain := p_limit >= p_quantum and v_channel.max_concurrency is null and v_channel.release_interval_ms is null
    and coalesce(v_channel.weight, 1) = 1 and not v_channel.is_paused and v_turn.last_at <= p_now and v_wakes.done = 0
    and v_wakes.look_requests = 0;
  if v_is_plain then
    v_allocation := row(p_turn, v_turn.channel_id, p_now, v_turn.last_at, null, v_turn.mark_at, v_turn.mark_id,
      null, null, null, null, v_turn.in_flight, v_turn.waiting + v_wakes.waiting, v_turn.has_uncapped,
      greatest(v_turn.wake_id, v_wakes.last_wake_id), 0, false, v_channel.name, p_quantum, v_channel.max_attempts,
      null, null, null, p_limit, false, v_wakes.wakes, null, p_now, 0, 1)::turn_allocation;
  else
    v_channel.release_burst := coalesce(v_channel.release_burst, 1);
    if v_turn.has_uncapped and v_channel.max_concurrency is not null then
      v_uncapped := lease_count_uncapped(v_turn.channel_id);
    end if;
    v_allocation := row((turn_assess(p_turn, v_turn, v_channel, v_wakes, v_uncapped, p_quantum, p_now)).*,
      null, p_now, 0, 1)::turn_allocation;
    if v_allocation.is_new_channel then
      perform channel_keep_name(array[v_allocation.channel_id]);
    end if;
  end if;
  if v_wakes.wakes is not null then
    delete from wake w where w.ctid = any(v_wakes.wakes);
  end if;

  if v_allocation.allowed > 0 and v_allocation.due_at <= p_now then
    v_allocation.share := least(p_limit, v_allocation.allowed,
      greatest(1, p_row_bytes / (110 + octet_length(v_allocation.name))));
    if v_allocation.share < least(v_allocation.allowed, v_allocation.waiting)
        and v_allocation.taken_before + v_allocation.share < v_allocation.turn_size
        and v_allocation.interval_us is null then
      -- The end of the reply interrupts the turn: it keeps its place.
      v_allocation.taken_after := v_allocation.taken_before + v_allocation.share;
      v_allocation.served_at := v_allocation.due_at;
    end if;
  end if;
  return v_allocation;
end
$$;
