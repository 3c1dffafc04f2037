-- message_settle_one: message_settle for a single turn. This is the common case and takes half the time without arrays
-- and shares. Both paths call the same functions for the scheduling rules.
-- A turn is plain if no rule has anything to decide: its channel has no cap, rate limit or weight and is not paused,
-- the turn has no late range, its wakes announce only messages above the mark, and the reply is not too short for a
-- turn. A plain turn gets its next messages and is due again when the message after them is. Most turns are plain, and
-- take a sixth less CPU time this way.
-- Reads:  turn, wake, channel, lease, message.
-- Locks:  nothing more.
-- Writes: turn, wake (delete); channel on first use.
create or replace function message_settle_one(
  p_turn tid, p_limit integer, p_row_bytes bigint, p_wake_id bigint, p_quantum integer
) returns settlement
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_turn turn;
  v_wakes wake_total := row(0, 0, null, null, null, null, null, false, 0, null, null, null);
  v_channel channel;
  v_allocation turn_allocation;
  v_is_plain boolean;
  v_uncapped bigint := 0;
  v_share integer;
  v_ids bigint[];
  v_ats bigint[];
  v_messages tid[];
  v_due_count integer;
  v_given integer := 0;
  v_late_count integer := 0;
  v_is_reply_full boolean := false;
begin
  select t.* into v_turn from turn t where t.ctid = p_turn;
  if not found then
    return null;
  end if;
  -- Usually there are no wakes, and this check is cheaper than adding them up.
  if exists (
    select from wake w where w.channel_id = v_turn.channel_id and w.id >= least(v_turn.wake_id - 64, p_wake_id)
    order by w.id limit 1
  ) then
    select * into v_wakes from wake_total(v_turn, least(v_turn.wake_id - 64, p_wake_id), v_now);
  end if;
  -- Read the policy after the wakes, so that it is no older than any change that they announce.
  select * into v_channel from channel c where c.id = v_turn.channel_id;

  v_is_plain := p_limit >= p_quantum and v_channel.max_concurrency is null and v_channel.release_interval_ms is null
    and v_channel.weight = 1 and not v_channel.is_paused and v_turn.late_at is null and v_turn.last_at <= v_now
    and v_wakes.done = 0 and v_wakes.look_requests = 0 and v_wakes.is_late is not true;
  if v_is_plain then
    v_share := least(p_limit, greatest(1, p_row_bytes / (110 + octet_length(v_channel.name))));
    v_is_reply_full := v_share < p_limit;
  else
    if v_turn.has_uncapped and v_channel.max_concurrency is not null then
      v_uncapped := lease_count_uncapped(v_turn.channel_id);
    end if;
    v_allocation := row((turn_assess(p_turn, v_turn, v_channel, v_wakes, v_uncapped, p_quantum, v_now)).*,
      null, v_now, 0, 1)::turn_allocation;
    if v_allocation.allowed > 0 and v_allocation.due_at <= v_now then
      v_share := least(p_limit, v_allocation.allowed,
        greatest(1, p_row_bytes / (110 + octet_length(v_allocation.name))));
      v_is_reply_full := v_share < least(p_limit, v_allocation.allowed);
      v_allocation.share := v_share;
    end if;
  end if;

  -- Choose the next messages, and one more to know what comes after them.
  if v_share > 0 and v_allocation.late_at is null then
    select array_agg(n.id), array_agg(n.dequeue_at), array_agg(n.tid),
      count(*) filter (where n.dequeue_at * 1000 <= v_now)
    into v_ids, v_ats, v_messages, v_due_count
    from message_next(v_turn.channel_id, v_turn.mark_at, v_turn.mark_id, v_share + 1) n;
    v_given := least(v_share, v_due_count);
  elsif v_share > 0 then
    select array_agg(n.id), array_agg(n.dequeue_at), array_agg(n.tid),
      count(*) filter (where n.dequeue_at * 1000 <= v_now), count(*) filter (where n.is_late)
    into v_ids, v_ats, v_messages, v_due_count, v_late_count
    from message_late_and_next(v_allocation, v_share + 1) n;
    v_given := least(v_share, v_due_count);
  end if;

  if v_is_plain then
    update turn t set
      version = t.version + 1,
      next_at = case when v_ats[v_given + 1] is not null
        then greatest(v_ats[v_given + 1] * 1000, case when v_given > 0 then v_now end) end,
      last_at = case when v_given > 0 then v_now else t.last_at end,
      mark_at = coalesce(v_ats[v_given], t.mark_at),
      mark_id = coalesce(v_ids[v_given], t.mark_id),
      waiting = t.waiting + v_wakes.waiting - v_given,
      has_uncapped = t.has_uncapped or v_given > 0,
      wake_id = greatest(t.wake_id, v_wakes.last_wake_id),
      taken = 0,
      return_at = null
    where t.ctid = p_turn;
  else
    if v_given = v_share and v_share < v_allocation.allowed
        and v_allocation.taken_before + v_given < v_allocation.turn_size and v_allocation.interval_us is null
        and v_ats[v_given + 1] is not null then
      -- The end of the reply interrupts the turn: it keeps its place.
      v_allocation.taken_after := v_allocation.taken_before + v_given;
      v_allocation.served_at := v_allocation.due_at;
    end if;
    update turn t set version = t.version + 1, next_at = a.next_at, last_at = a.last_at, release_at = a.release_at,
      mark_at = a.mark_at, mark_id = a.mark_id, late_at = a.late_at, late_id = a.late_id, late_to = a.late_to,
      late_to_id = a.late_to_id, in_flight = a.in_flight, waiting = a.waiting, has_uncapped = a.has_uncapped,
      wake_id = a.wake_id, taken = a.taken, return_at = a.return_at
    from (select (turn_advance(v_allocation, v_ids, v_ats, v_late_count, v_given, v_now)).*) a
    where t.ctid = p_turn;
    if v_allocation.is_new_channel then
      perform channel_keep_name(array[v_allocation.channel_id]);
    end if;
  end if;
  if v_wakes.wakes is not null then
    delete from wake w where w.ctid = any(v_wakes.wakes);
  end if;
  if v_given = 0 then
    return null;
  end if;
  v_channel.name := coalesce(v_channel.name, v_wakes.channel_name);
  return row(v_now, v_messages[1:v_given], v_ids[1:v_given], array_fill(1, array[v_given]), array[v_turn.channel_id],
    array[v_channel.name], array[v_channel.max_attempts], array[v_channel.release_interval_ms * 1000],
    array[v_channel.max_concurrency is not null], octet_length(v_channel.name), v_is_reply_full, null)::settlement;
end
$$;
