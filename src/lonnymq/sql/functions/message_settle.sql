-- message_settle: for turns that this transaction has locked in an earlier statement: read them, share p_limit among
-- them, choose their messages, and write the turns. Part of message_dequeue, which leases the messages.
-- Messages are read after the wakes, so that the message of every wake that was added is seen.
-- Reads:  turn, channel, wake, lease, message.
-- Locks:  nothing more.
-- Writes: turn, wake (delete); channel on first use.
create or replace function message_settle(p_turns tid[], p_limit integer, p_row_bytes bigint, p_wake_id bigint)
returns settlement
language plpgsql
as $$
#variable_conflict use_column
declare
  v settlement;
  v_states turn_state[];
  v_wakes tid[];
  v_nameless bigint[];
  v_wants bigint[];      -- how many a turn could have, by what waits and by its policy; 0: nothing now
  v_weights integer[];
  v_taken integer[];
  v_due_at bigint[];
  v_ready integer;
  v_total_weight bigint;
  v_limit integer;
  v_share record;
begin
  v.settled_at := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  with f as materialized (
    select s, case when s.due_at <= v.settled_at then least(s.room, greatest(s.waiting, 1)) else 0 end as want
    from turn_read(p_turns, p_wake_id, v.settled_at) s
    -- Turns that may have a message come first, those that have waited longest in front.
    order by case when s.room > 0 and s.due_at <= v.settled_at then s.due_at else 9223372036854775807 end, s.channel_id
  )
  select array_agg(f.s), array_agg((f.s).channel_id), array_agg((f.s).name), array_agg((f.s).max_attempts),
    array_agg((f.s).interval_us), array_agg((f.s).free is not null), array_agg(f.want), array_agg((f.s).weight),
    array_agg((f.s).had), array_agg((f.s).due_at), sum((f.s).weight) filter (where f.want > 0),
    least(count(*) filter (where f.want > 0), p_limit),
    coalesce(max(octet_length((f.s).name)) filter (where f.want > 0), 0),
    array_agg((f.s).channel_id) filter (where (f.s).is_nameless),
    (select array_agg(w) from f cross join lateral unnest((f.s).wakes) w)
  into v_states, v.channel_ids, v.names, v.max_attempts, v.intervals, v.are_capped, v_wants, v_weights, v_taken,
    v_due_at, v_total_weight, v_ready, v.name_bytes, v_nameless, v_wakes
  from f;

  -- Names cannot be left out of the reply.
  v_limit := least(p_limit, greatest(1, p_row_bytes / (110 + v.name_bytes)));
  v.is_cut := v_ready > 0 and v_limit < p_limit;
  v_share := turn_share(v_limit, v.settled_at, v_ready, v_total_weight, v_wants, v_weights, v_taken, v.intervals,
    v_due_at);

  with given as materialized (
    select (u::turn_plan).tid as turn_tid, (u::turn_plan).weight, (u::turn_plan).place, m.ids, m.tids, m.given,
      (turn_advance(u::turn_plan, m.ids, m.ats, m.late_count, m.given, v.settled_at)).*
    from rows from (unnest(v_states), unnest(v_share.shares), unnest(v_share.served_at), unnest(v_share.taken))
      with ordinality u
    cross join lateral (
      -- One more than the share, to know what comes next.
      select array_agg(n.id) as ids, array_agg(n.dequeue_at) as ats, array_agg(n.tid) as tids,
        count(*) filter (where n.is_late) as late_count,
        least(
          count(*) filter (where n.dequeue_at * 1000 <= v.settled_at), coalesce((u::turn_plan).share, 0)
        )::integer as given
      from message_late_and_next(u::turn_plan,
        case when (u::turn_plan).share > 0 then (u::turn_plan).share + 1 else 0 end) n
    ) m
  ),
  updated as (
    update turn t set version = t.version + 1, next_at = g.next_at, last_at = g.last_at, release_at = g.release_at,
      mark_at = g.mark_at, mark_id = g.mark_id, late_at = g.late_at, late_id = g.late_id, late_to = g.late_to,
      late_to_id = g.late_to_id, in_flight = g.in_flight, waiting = g.waiting, has_uncapped = g.has_uncapped,
      wake_id = g.wake_id, taken = g.taken
    from given g
    where t.ctid = g.turn_tid
  )
  select array_agg(m.tid), array_agg(m.id), array_agg(m.place) into v.messages, v.ids, v.places
  from (
    -- Within the reply, too, turns alternate by weight.
    select p.tid, p.id, g.place::integer as place
    from given g
    cross join lateral unnest(g.tids[1:g.given], g.ids[1:g.given]) with ordinality p(tid, id, number)
    where g.given > 0
    order by (p.number - 1) / g.weight, g.place, p.number
  ) m;
  if v_nameless is not null then
    perform channel_keep(v_nameless);
  end if;
  if v_wakes is not null then
    delete from wake w where w.ctid = any(v_wakes);
  end if;
  return v;
end
$$;
