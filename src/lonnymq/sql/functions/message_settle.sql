-- message_settle: for turns that this transaction has locked in an earlier statement: read them, divide p_limit
-- messages among them, choose the messages, and write the turns. Part of message_dequeue, which then leases the
-- messages. Messages are read after the wakes, so that the message of every wake that was added is visible.
-- The rotation and the turns that return from idleness are served alternately. A turn that returns has a place in both,
-- and is served at the earlier one; that of a new channel has none in the rotation. Weights do not count for turns that
-- return beside others. So at least half of the messages follow the rotation. p_returns_first: a turn that returns
-- comes first.
-- Reads:  turn, channel, wake, lease, message.
-- Locks:  nothing more.
-- Writes: turn, wake (delete); channel on first use.
create or replace function message_settle(
  p_turns tid[], p_limit integer, p_row_bytes bigint, p_wake_id bigint, p_quantum integer, p_returns_first boolean
) returns settlement
language plpgsql
as $$
#variable_conflict use_column
declare
  v_settlement settlement;
  v_states turn_state[];
  v_wakes tid[];
  v_new_channel_ids bigint[];
  v_wants bigint[];      -- how many messages each turn can use: what waits, as far as its policy allows; 0: none now
  v_turn_sizes integer[];
  v_taken integer[];
  v_due_at bigint[];
  v_ready integer;       -- how many turns can use a message
  v_total_size bigint;
  v_can_fill boolean;    -- each of these turns can be filled, and none was interrupted
  v_has_returning boolean;
  v_limit integer;
  v_share record;
  v_default setting;     -- null if no policy depends on it
begin
  -- The turns are locked, so a change of the default policy that this misses is announced to them.
  if pg_sequence_last_value('policy_change_id_seq') is not null then
    select s.* into v_default from setting s where s.is_only;
  end if;
  v_settlement.settled_at := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  with t as materialized (
    select p.state, p.want
    from (
      select s.state, s.want, (s.state).is_returning, s.is_new,
        row_number() over (partition by s.want > 0, s.is_new order by (s.state).due_at, (s.state).wake_id) as place,
        row_number() over (partition by s.want > 0, (s.state).is_returning order by (s.state).due_at, (s.state).wake_id)
          as return_place
      from (
        select s as state, s.is_returning and s.last_at = 0 as is_new,
          case when s.due_at <= v_settlement.settled_at then least(s.allowed, greatest(s.waiting, 1)) else 0 end as want
        from turn_read(p_turns, p_wake_id, p_quantum, v_default, v_settlement.settled_at) s
        offset 0
      ) s
    ) p
    -- Turns that can use a message come first, the longest waiting at the front.
    order by p.want > 0 desc, least(
      case when not p.is_new then 2 * p.place end,
      case when p.is_returning then 2 * p.return_place + case when p_returns_first then -1 else 1 end end
    )
  )
  select array_agg(t.state), array_agg((t.state).channel_id), array_agg((t.state).name),
    array_agg((t.state).max_attempts), array_agg((t.state).interval_us), array_agg((t.state).cap_left is not null),
    array_agg(t.want), array_agg((t.state).turn_size), array_agg((t.state).taken_before), array_agg((t.state).due_at),
    sum((t.state).turn_size) filter (where t.want > 0),
    bool_and(t.want >= (t.state).turn_size and (t.state).taken_before = 0) filter (where t.want > 0),
    bool_or((t.state).is_returning) filter (where t.want > 0),
    least(count(*) filter (where t.want > 0), p_limit),
    coalesce(max(octet_length((t.state).name)) filter (where t.want > 0), 0),
    array_agg((t.state).channel_id) filter (where (t.state).is_new_channel),
    (select array_agg(w) from t cross join lateral unnest((t.state).wakes) w)
  into v_states, v_settlement.channel_ids, v_settlement.names, v_settlement.max_attempts, v_settlement.intervals_us,
    v_settlement.are_capped, v_wants, v_turn_sizes, v_taken, v_due_at, v_total_size, v_can_fill, v_has_returning,
    v_ready, v_settlement.name_bytes, v_new_channel_ids, v_wakes
  from t;

  if v_new_channel_ids is not null and v_default.is_only then
    -- Another transaction is inserting a channel's row, and the turn was assessed without the default policy: look
    -- again in 200 ms, as if leases that are not counted had used up a cap.
    for i in 1..cardinality(v_states) loop
      if v_states[i].is_new_channel then
        v_states[i].cap_left := 0;
        v_states[i].allowed := 0;
        v_states[i].has_uncapped := true;
        v_wants[i] := 0;
        v_can_fill := false;
      end if;
    end loop;
  end if;

  -- Every row of the reply has the channel's name, so long names mean fewer rows.
  v_limit := least(p_limit, greatest(1, p_row_bytes / (110 + v_settlement.name_bytes)));
  v_settlement.is_reply_full := v_ready > 0 and v_limit < p_limit;
  if v_has_returning and v_total_size > v_limit then
    v_turn_sizes := array(
      select case when s.is_returning then p_quantum else s.turn_size end
      from unnest(v_states) with ordinality s order by s.ordinality
    );
    v_can_fill := false;
  end if;
  v_share := turn_share(v_limit, v_settlement.settled_at, v_ready, v_total_size, v_can_fill, v_wants, v_turn_sizes,
    v_taken, v_settlement.intervals_us, v_due_at);
  if v_has_returning then
    v_settlement.min_return_at := (
      select min(s.due_at)
      from unnest(v_states) with ordinality s
      where s.is_returning and v_wants[s.ordinality] > 0 and coalesce(v_share.shares[s.ordinality], 0) = 0
    );
  end if;

  with advanced as materialized (
    select (u::turn_allocation).tid as turn_tid, (u::turn_allocation).turn_size, (u::turn_allocation).ordinal, m.ids,
      m.tids, m.given, m.wait_ms,
      -- A turn that waits for its share stays as it is, unless there are wakes to add to it.
      (coalesce((u::turn_allocation).share, 0) = 0 and (u::turn_allocation).due_at <= v_settlement.settled_at
        and (u::turn_allocation).allowed > 0 and (u::turn_allocation).wakes is null) is not true as has_changed,
      (turn_advance(u::turn_allocation, m.ids, m.ats, m.late_count, m.given, v_settlement.settled_at)).*
    from rows from (unnest(v_states), unnest(v_share.shares), unnest(v_share.served_at), unnest(v_share.taken))
      with ordinality u
    cross join lateral (
      -- One message more than the share, to know what comes next.
      select array_agg(n.id) as ids, array_agg(n.dequeue_at) as ats, array_agg(n.tid) as tids,
        count(*) filter (where n.is_late) as late_count,
        least(count(n.wait_ms), coalesce((u::turn_allocation).share, 0))::integer as given,
        -- Without the message that comes next.
        sum(n.wait_ms) - coalesce((array_agg(n.wait_ms))[(u::turn_allocation).share + 1], 0) as wait_ms
      from message_late_and_next(u::turn_allocation,
        case when (u::turn_allocation).share > 0 then (u::turn_allocation).share + 1 else 0 end,
        v_settlement.settled_at) n
    ) m
  ),
  updated as (
    update turn t set version = t.version + 1, next_at = a.next_at, last_at = a.last_at, release_at = a.release_at,
      mark_at = a.mark_at, mark_id = a.mark_id, late_at = a.late_at, late_id = a.late_id, late_to = a.late_to,
      late_to_id = a.late_to_id, in_flight = a.in_flight, waiting = a.waiting, has_uncapped = a.has_uncapped,
      wake_id = a.wake_id, taken = a.taken, return_at = a.return_at, released = t.released + a.given,
      waited_ms = t.waited_ms + greatest(a.wait_ms, 0)::bigint
    from advanced a
    where t.ctid = a.turn_tid and a.has_changed
  )
  select array_agg(m.tid), array_agg(m.id), array_agg(m.ordinal)
  into v_settlement.messages, v_settlement.ids, v_settlement.turn_ordinals
  from (
    -- The channels alternate within the reply, too: one message each, by weight.
    select p.tid, p.id, a.ordinal::integer as ordinal
    from advanced a
    cross join lateral unnest(a.tids[1:a.given], a.ids[1:a.given]) with ordinality p(tid, id, number)
    where a.given > 0
    order by (p.number - 1) * p_quantum / a.turn_size, a.ordinal, p.number
  ) m;
  if v_new_channel_ids is not null then
    perform channel_keep_name(v_new_channel_ids);
  end if;
  if v_wakes is not null then
    delete from wake w where w.ctid = any(v_wakes);
  end if;
  return v_settlement;
end
$$;
