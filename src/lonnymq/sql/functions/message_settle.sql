-- message_settle: for turns that this transaction has locked in an earlier statement: fold their wakes, read their
-- policy, and say how many messages each may have of the next p_limit. Part of message_dequeue, which leases them.
-- Returns arrays with an element per turn, those that may have something now first, least recently served first:
-- its place, the turn as it is after folding, and so on; is_cut if the reply would grow too large for p_limit; channels
-- that have no row yet, and the wakes that were folded.
-- p_wake_id is the lowest wake known; lower ones than a turn has folded are rare and came late.
-- One statement reads turns, wakes and policy, so that the policy is as new as the wakes that announce it; messages are
-- read later, so that every folded wake's message is seen. Each step reads one table by one index (lateral … offset 0),
-- so that no plan can go wrong.
-- Locks:  nothing more.
-- Writes: nothing.
create or replace function message_settle(
  p_turns tid[], p_limit integer, p_row_bytes bigint, p_wake_id bigint,
  out settled_at bigint, out tids tid[], out turns turn[], out names text[], out weights integer[],
  out shares integer[], out takens integer[], out served_at bigint[], out free bigint[], out intervals bigint[], out spares bigint[],
  out max_attempts integer[], out name_bytes integer, out is_cut boolean, out nameless bigint[], out wakes tid[]
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_wants bigint[];      -- how many it could have, by what waits and by its policy; 0: nothing now
  v_ready integer;
  v_weights bigint;
  v_limit integer;
  v_left integer;
  v_round integer;
  v_is_ahead boolean[];
  v_more integer;
  v_cut integer;
begin
  settled_at := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  with f as materialized (
    select f.*, case when f.due_at <= settled_at then least(f.room, greatest(f.waiting, 1)) else 0 end as want
    from (
      select t.ctid as tid, t.channel_id, t.version, least(t.last_at, settled_at) as last_at, t.mark_at, t.mark_id,
        t.in_flight - coalesce(k.done, 0) as in_flight, t.waiting + coalesce(k.waiting, 0) as waiting,
        coalesce(c.name, k.name) as name, c.name is null as is_nameless, coalesce(c.weight, 1) as weight, c.max_attempts,
        k.uncapped > 0 or c.max_concurrency is null and t.has_uncapped as has_uncapped,
        c.max_concurrency - t.in_flight + coalesce(k.done, 0) - k.uncapped as free,
        greatest(0, least(
          c.max_concurrency - t.in_flight + coalesce(k.done, 0) - k.uncapped,
          -- How many intervals fit between the next evenly spaced release, less what a burst may be ahead, and now.
          (settled_at + c.release_burst * c.release_interval_ms * 1000 - greatest(settled_at, least(t.release_at,
            least(t.last_at, settled_at) + c.release_burst * c.release_interval_ms * 1000)))
            / (c.release_interval_ms * 1000),
          2147483647
        )) as room,
        -- Stamps from the future are from before the clock stepped back.
        case when c.is_paused is not true then greatest(least(t.last_at, settled_at), least(
          case when t.last_at > settled_at then least(t.next_at, settled_at) else t.next_at end,
          k.due_at * 1000,
          case when k.looks > 0 then least(t.last_at, settled_at) end
        )) end as due_at,
        c.release_interval_ms * 1000 as interval_us, (c.release_burst - 1) * c.release_interval_ms * 1000 as spare_us,
        -- Never further ahead than a burst at the last release: the limit may have changed, or the clock.
        case when c.release_interval_ms is not null then greatest(settled_at, least(t.release_at,
          least(t.last_at, settled_at) + c.release_burst * c.release_interval_ms * 1000)) end as release_at,
        -- What woke below the mark came late.
        case when k.is_late and (t.late_at is null or (k.at, k.first_id - 1) < (t.late_at, t.late_id))
          then k.at else t.late_at end as late_at,
        case when k.is_late and (t.late_at is null or (k.at, k.first_id - 1) < (t.late_at, t.late_id))
          then k.first_id - 1 else t.late_id end as late_id,
        case when k.is_late then greatest(t.late_to, k.to_at) else t.late_to end as late_to,
        case when k.is_late then greatest(t.late_to_id, k.to_id) else t.late_to_id end as late_to_id,
        greatest(t.wake_id, k.last_id) as wake_id, t.taken, k.wakes
      from turn t
      left join lateral (select * from channel c where c.id = t.channel_id offset 0) c on true
      cross join lateral (
        select sum(w.done) as done, sum(w.waiting) as waiting, min(w.at) as at,
          -- What comes in bulk begins to wait when it is read, so that it is not in front of everybody.
          min(case when w.lane = 1 then greatest(w.at, settled_at / 1000) else w.at end) as due_at,
          min(w.message_id) as first_id, max(w.to_at) as to_at, max(w.to_id) as to_id,
          (min(w.at), min(w.message_id)) <= (t.mark_at, t.mark_id) as is_late,
          count(*) filter (where w.at is null or w.done > 0) as looks, max(w.id) as last_id,
          array_agg(w.ctid) as wakes, min(w.channel_name) filter (where c.name is null) as name,
          -- A cap that was set while leases were out that nobody will report: count them, as long as there are any.
          case when c.max_concurrency is not null and t.has_uncapped then
            (select count(*) from lease l where l.channel_id = t.channel_id and not l.is_capped) else 0 end as uncapped
        from (
          select w.ctid, w.* from wake w
          where w.channel_id = t.channel_id and w.id >= least(t.wake_id - 64, p_wake_id)
          order by w.id
        ) w
      ) k
      where t.ctid = any(p_turns)
      offset 0
    ) f
    order by case when f.room > 0 and f.due_at <= settled_at then f.due_at else 9223372036854775807 end, f.channel_id
  )
  select array_agg(f.tid), array_agg(row(f.channel_id, f.version, f.due_at, f.last_at, f.release_at, f.mark_at, f.mark_id,
      f.late_at, f.late_id, f.late_to, f.late_to_id, f.in_flight, f.waiting, f.has_uncapped, f.wake_id, f.taken)::turn),
    array_agg(f.name), array_agg(f.weight), array_agg(f.want), array_agg(f.taken), array_agg(f.free), array_agg(f.interval_us),
    array_agg(f.spare_us), array_agg(f.max_attempts), least(count(*) filter (where f.want > 0), p_limit),
    sum(f.weight) filter (where f.want > 0), coalesce(max(octet_length(f.name)) filter (where f.want > 0), 0),
    array_agg(f.channel_id) filter (where f.is_nameless), (select array_agg(w) from f cross join lateral unnest(f.wakes) w)
  into tids, turns, names, weights, v_wants, takens, free, intervals, spares, max_attempts, v_ready, v_weights, name_bytes, nameless, wakes
  from f;
  if coalesce(v_ready, 0) = 0 then
    is_cut := false;
    return;
  end if;

  -- Names cannot be left out of the reply.
  v_limit := least(p_limit, greatest(1, p_row_bytes / (110 + name_bytes)));
  is_cut := v_limit < p_limit;
  if v_weights = v_limit and v_ready = v_limit then
    -- The common case of many channels: one each.
    shares := array_fill(1, array[v_ready]);
  else
    -- Whole rounds for everybody that wants more, then what is left in order of waiting.
    shares := array_fill(0, array[v_ready]);
    v_left := v_limit;
    loop
      v_round := (select v_left / nullif(sum(u.weight), 0)
        from unnest(weights[1:v_ready], v_wants[1:v_ready], shares) u(weight, want, share) where u.want > u.share);
      exit when v_left = 0 or v_round is null;
      for i in 1..v_ready loop
        if v_wants[i] > shares[i] and v_left > 0 then
          v_more := least(v_wants[i] - shares[i], v_left, greatest(weights[i] * greatest(v_round, 1) - takens[i], 1));
          shares[i] := shares[i] + v_more;
          v_left := v_left - v_more;
          v_is_ahead[i] := v_round = 0;
          if v_left = 0 and v_round = 0 and takens[i] + v_more < weights[i] and v_wants[i] > shares[i]
              and intervals[i] is null then
            v_cut := i;
            takens[i] := takens[i] + v_more;
          else
            takens[i] := 0;
          end if;
        end if;
      end loop;
    end loop;
  end if;
  -- Everybody keeps his place, those that got more than others behind them; a rate limit wants the exact time. Whose turn
  -- was cut by the end of the reply is first in the next one.
  served_at := array(
    select settled_at - case when u.interval_us is not null then 0 when u.is_ahead then v_ready - u.place
      else 2 * v_ready - u.place end
    from unnest(intervals[1:v_ready], v_is_ahead) with ordinality u(interval_us, is_ahead, place)
  );
  if v_cut is not null then
    served_at[v_cut] := turns[v_cut].next_at;
  end if;
end
$$;
