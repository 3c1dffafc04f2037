-- message_settle: for turns that this transaction has locked in an earlier statement: fold their wakes, read their
-- policy, choose their next messages, and say when to look at them again. Part of message_dequeue.
-- Returns the messages to lease, in the order to work them, with their channels, whether those have a cap, and whether
-- the contents fit the reply (null: all do); is_cut if the reply is full.
-- p_wake_id is the lowest wake known; lower ones than a turn has folded are rare and came late.
-- Its statements are many and small: each reads one table by one index, so that no plan can go wrong, and starting them
-- is cheap. The order matters: wakes are read before messages, so that every folded wake's message is seen; and the
-- wakes that are deleted are those that were read.
-- Locks:  nothing more.
-- Writes: turn, wake (delete).
create or replace function message_settle(
  p_turns tid[], p_limit integer, p_content_bytes bigint, p_row_bytes bigint, p_wake_id bigint,
  out leased_at bigint, out messages tid[], out ids bigint[], out channels text[], out channel_ids bigint[],
  out is_capped boolean[], out max_attempts integer[], out fits boolean[], out is_cut boolean, out content_bytes bigint, out row_bytes bigint
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  t record;
  n record;
  v_count integer := 0;
  v_ready integer := 0;
  v_weights bigint := 0;
  v_limit integer := p_limit;
  v_left integer;
  v_name_bytes integer := 0;
  v_has_late boolean := false;
  v_has_rounds boolean := false;
  v_bytes bigint := 0;
  v_wakes tid[] := '{}';
  v_nameless bigint[];
  -- By turn, in the order of waiting.
  c_none constant bigint[] := array_fill(null::bigint, array[cardinality(p_turns)]);
  t_tid tid[]; t_channel_id bigint[]; t_name text[]; t_weight integer[]; t_room bigint[]; t_share bigint[];
  t_due_at bigint[]; t_next_at bigint[]; t_last_at bigint[]; t_is_capped boolean[]; t_has_uncapped boolean[];
  t_in_flight bigint[]; t_waiting bigint[]; t_wake_id bigint[]; t_mark_at bigint[]; t_mark_id bigint[];
  t_late_at bigint[] := c_none; t_late_id bigint[] := c_none; t_late_to bigint[] := c_none; t_late_to_id bigint[] := c_none;
  t_release_at bigint[] := c_none; t_interval bigint[] := c_none; t_spare bigint[] := c_none; t_free bigint[] := c_none;
  t_is_paused boolean[] := c_none; t_is_ahead boolean[] := c_none; t_max_attempts integer[] := c_none;
  t_late_count integer[]; t_due_count integer[]; t_given integer[];
  t_first integer[]; t_last integer[];  -- its messages in these:
  m_id bigint[] := '{}'; m_at bigint[] := '{}'; m_tid tid[] := '{}';
  -- By message to lease: its place and its turn.
  l_tid tid[] := '{}'; l_id bigint[] := '{}'; l_turn integer[] := '{}';
  v_given integer;
  v_at integer;
  v_ahead integer := 0;
  v_stamp integer := 0;
  v_stamp_ahead integer := 0;
begin
  -- Each turn after folding its wakes; those that may have something now first, least recently served first.
  for t in
    select h.*, h.room > 0 and h.due_at <= v_now as is_ready
    from (
      select t.ctid as tid, t.channel_id, t.last_at, t.mark_at, t.mark_id, t.late_at, t.late_id, t.late_to, t.late_to_id,
        t.in_flight - coalesce(k.done, 0) as in_flight, t.waiting + coalesce(k.waiting, 0) as waiting,
        c.name, coalesce(c.weight, 1) as weight, c.is_paused, c.max_attempts,
        c.max_concurrency is not null as is_capped,
        k.uncapped > 0 or c.max_concurrency is null and t.has_uncapped as has_uncapped,
        c.max_concurrency - t.in_flight + coalesce(k.done, 0) - k.uncapped as free,
        case when c.is_paused then 0 else greatest(0, least(
          c.max_concurrency - t.in_flight + coalesce(k.done, 0) - k.uncapped,
          -- How many intervals fit between the next evenly spaced release, less what a burst may be ahead, and now.
          (v_now + c.release_burst * c.release_interval_ms * 1000 - greatest(v_now, least(t.release_at,
            least(t.last_at, v_now) + c.release_burst * c.release_interval_ms * 1000))) / (c.release_interval_ms * 1000),
          2147483647
        )) end as room,
        -- Stamps from the future are from before the clock stepped back.
        greatest(least(t.last_at, v_now), least(
          case when t.last_at > v_now then least(t.next_at, v_now) else t.next_at end,
          k.due_at * 1000,
          case when k.looks > 0 then least(t.last_at, v_now) end
        )) as due_at,
        t.release_at, c.release_interval_ms * 1000 as interval_us, (c.release_burst - 1) * c.release_interval_ms * 1000 as spare_us,
        greatest(t.wake_id, k.last_id) as wake_id, k.wakes, k.at, k.first_id, k.to_at, k.to_id
      from turn t
      left join lateral (select * from channel c where c.id = t.channel_id offset 0) c on true
      cross join lateral (
        select sum(w.done) as done, sum(w.waiting) as waiting, min(w.at) as at,
          -- What comes in bulk begins to wait when it is read, so that it is not in front of everybody.
          min(case when w.lane = 1 then greatest(w.at, v_now / 1000) else w.at end) as due_at, min(w.message_id) as first_id, max(w.to_at) as to_at,
          max(w.to_id) as to_id,
          count(*) filter (where w.at is null or w.done > 0) as looks, max(w.id) as last_id, array_agg(w.ctid) as wakes,
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
    ) h
    order by h.room > 0 and h.due_at <= v_now desc, h.due_at, h.channel_id
  loop
    v_count := v_count + 1;
    t_tid[v_count] := t.tid; t_channel_id[v_count] := t.channel_id; t_name[v_count] := t.name;
    t_weight[v_count] := t.weight; t_room[v_count] := t.room; t_share[v_count] := 0; t_given[v_count] := 0;
    t_due_at[v_count] := t.due_at; t_last_at[v_count] := least(t.last_at, v_now);
    t_is_capped[v_count] := t.is_capped; t_has_uncapped[v_count] := t.has_uncapped; t_in_flight[v_count] := t.in_flight;
    t_waiting[v_count] := t.waiting; t_wake_id[v_count] := t.wake_id;
    t_mark_at[v_count] := t.mark_at; t_mark_id[v_count] := t.mark_id;
    -- What few turns have.
    if t.name is null then
      v_nameless := v_nameless || t.channel_id;
      t_name[v_count] := (
        select w.channel_name from wake w where w.channel_id = t.channel_id and w.channel_name is not null order by w.id limit 1
      );
    end if;
    if t.is_paused then
      t_is_paused[v_count] := true;
    end if;
    if t.max_attempts is not null then
      t_max_attempts[v_count] := t.max_attempts;
    end if;
    if t.is_capped then
      t_free[v_count] := t.free;
    end if;
    if t.interval_us is not null then
      t_interval[v_count] := t.interval_us; t_spare[v_count] := t.spare_us;
      -- Never further ahead than a burst at the last release: the limit may have changed, or the clock.
      t_release_at[v_count] := greatest(v_now, least(t.release_at, least(t.last_at, v_now) + t.spare_us + t.interval_us));
    end if;
    -- What woke below the mark came late.
    if (t.at, t.first_id) <= (t.mark_at, t.mark_id) then
      t.late_to := greatest(t.late_to, t.to_at);
      t.late_to_id := greatest(t.late_to_id, t.to_id);
      if t.late_at is null or (t.at, t.first_id - 1) < (t.late_at, t.late_id) then
        t.late_at := t.at;
        t.late_id := t.first_id - 1;
      end if;
    end if;
    if t.late_at is not null then
      t_late_at[v_count] := t.late_at; t_late_id[v_count] := t.late_id; t_late_to[v_count] := t.late_to;
      t_late_to_id[v_count] := t.late_to_id;
    end if;
    if t.wakes is not null then
      v_wakes := v_wakes || t.wakes;
    end if;
    if t.is_ready and v_ready < p_limit then
      v_ready := v_ready + 1;
      v_name_bytes := greatest(v_name_bytes, octet_length(t.name), 0);
      v_weights := v_weights + t.weight;
      v_has_late := v_has_late or t.late_at is not null;
    end if;
  end loop;

  if v_ready > 0 then
    -- Names cannot be left out of the reply.
    v_limit := least(p_limit, greatest(1, p_row_bytes / (110 + v_name_bytes)));
    is_cut := v_limit < p_limit;
    for i in 1..v_ready loop
      t_share[i] := least(t_room[i], t_weight[i] * ((v_limit + v_weights - 1) / v_weights));
    end loop;
    -- The next messages, one more than the share: first those that came late, below the mark,
    if v_has_late then
      for n in
        select u.turn, m.ids, m.ats, m.tids, m.late_count, m.due_count, m.bytes
        from unnest(t_channel_id[1:v_ready], t_mark_at[1:v_ready], t_mark_id[1:v_ready], t_late_at[1:v_ready],
          t_late_id[1:v_ready], t_late_to[1:v_ready], t_late_to_id[1:v_ready], t_share[1:v_ready])
          with ordinality u(channel_id, mark_at, mark_id, late_at, late_id, late_to, late_to_id, share, turn)
        cross join lateral (
          select array_agg(n.id) as ids, array_agg(n.dequeue_at) as ats, array_agg(n.tid) as tids,
            count(*) filter (where n.is_late) as late_count,
            count(*) filter (where n.dequeue_at * 1000 <= v_now) as due_count, sum(n.bytes) as bytes
          from (
            select * from (
              (
                select m.id, m.dequeue_at, m.ctid as tid, true as is_late,
                  octet_length(m.content) + coalesce(octet_length(m.state), 0) + coalesce(octet_length(m.key), 0) as bytes
                from message m
                where u.late_at is not null and m.channel_id = u.channel_id
                  and (m.dequeue_at, m.id + 0) > (u.late_at, u.late_id)
                  and (m.dequeue_at, m.id + 0) <= (u.mark_at, u.mark_id)
                  and (m.dequeue_at, m.id + 0) <= (u.late_to, u.late_to_id)
                  and (select true from lease l where l.message_id = m.id) is null
                order by m.channel_id, m.dequeue_at, m.id + 0
                limit u.share + 1
              )
              union all
              (
                select m.id, m.dequeue_at, m.ctid as tid, false as is_late,
                  octet_length(m.content) + coalesce(octet_length(m.state), 0) + coalesce(octet_length(m.key), 0) as bytes
                from message m
                where m.channel_id = u.channel_id and (m.dequeue_at, m.id + 0) > (u.mark_at, u.mark_id)
                order by m.channel_id, m.dequeue_at, m.id + 0
                limit u.share + 1
              )
            ) a
            limit u.share + 1
          ) n
        ) m
      loop
        t_late_count[n.turn] := n.late_count; t_due_count[n.turn] := least(n.due_count, t_share[n.turn]);
        t_first[n.turn] := cardinality(m_id);
        m_id := m_id || n.ids; m_at := m_at || n.ats; m_tid := m_tid || n.tids;
        t_last[n.turn] := cardinality(m_id);
        v_bytes := v_bytes + coalesce(n.bytes, 0);
      end loop;
    else
      -- or, if there is none, just those past it.
      for n in
        select u.turn, m.ids, m.ats, m.tids, m.due_count, m.bytes
        from unnest(t_channel_id[1:v_ready], t_mark_at[1:v_ready], t_mark_id[1:v_ready], t_share[1:v_ready])
          with ordinality u(channel_id, mark_at, mark_id, share, turn)
        cross join lateral (
          select array_agg(n.id) as ids, array_agg(n.dequeue_at) as ats, array_agg(n.tid) as tids,
            count(*) filter (where n.dequeue_at * 1000 <= v_now) as due_count, sum(n.bytes) as bytes
          from (
            select m.id, m.dequeue_at, m.ctid as tid, octet_length(m.content) + coalesce(octet_length(m.state), 0) + coalesce(octet_length(m.key), 0) as bytes
            from message m
            where m.channel_id = u.channel_id and (m.dequeue_at, m.id + 0) > (u.mark_at, u.mark_id)
            order by m.channel_id, m.dequeue_at, m.id + 0
            limit u.share + 1
          ) n
        ) m
      loop
        t_late_count[n.turn] := 0; t_due_count[n.turn] := least(n.due_count, t_share[n.turn]);
        t_first[n.turn] := cardinality(m_id);
        m_id := m_id || n.ids; m_at := m_at || n.ats; m_tid := m_tid || n.tids;
        t_last[n.turn] := cardinality(m_id);
        v_bytes := v_bytes + coalesce(n.bytes, 0);
      end loop;
    end if;
    -- Whole rounds for everybody, then what is left in order of waiting.
    v_left := v_limit;
    for i in 1..v_ready loop
      t_given[i] := least(t_due_count[i], t_weight[i] * (v_limit / v_weights));
      v_left := v_left - t_given[i];
    end loop;
    for i in 1..v_ready loop
      exit when v_left = 0;
      if t_due_count[i] > t_given[i] then
        v_given := least(t_due_count[i] - t_given[i], v_left);
        t_given[i] := t_given[i] + v_given;
        v_left := v_left - v_given;
        t_is_ahead[i] := true;
        v_ahead := v_ahead + 1;
      end if;
    end loop;
  end if;

  for i in 1..v_count loop
    v_given := t_given[i];
    if v_given > 0 then
      l_tid := l_tid || m_tid[t_first[i] + 1 : t_first[i] + v_given];
      l_id := l_id || m_id[t_first[i] + 1 : t_first[i] + v_given];
      l_turn := l_turn || array_fill(i, array[v_given]);
      v_has_rounds := v_has_rounds or v_given > t_weight[i];
      -- Everybody keeps his place, those that got more than others behind them; a rate limit wants the exact time.
      if t_interval[i] is not null then
        t_last_at[i] := v_now;
      elsif t_is_ahead[i] then
        v_stamp_ahead := v_stamp_ahead + 1;
        t_last_at[i] := greatest(t_last_at[i], v_now - v_ahead + v_stamp_ahead);
      else
        v_stamp := v_stamp + 1;
        t_last_at[i] := greatest(t_last_at[i], v_now - v_ready + v_stamp);
      end if;
      t_waiting[i] := t_waiting[i] - v_given;
      if t_is_capped[i] then
        t_in_flight[i] := t_in_flight[i] + v_given;
      else
        t_has_uncapped[i] := true;
      end if;
      t_release_at[i] := t_release_at[i] + v_given * t_interval[i];
    end if;
    if t_share[i] = 0 then
      t_next_at[i] := case when t_room[i] = 0 then greatest(t_due_at[i], t_release_at[i] - t_spare[i]) else t_due_at[i] end;
    else
      v_at := t_first[i] + v_given;  -- the last message given; the next one, if any, follows
      t_next_at[i] := case when v_at < t_last[i] then
        greatest(m_at[v_at + 1] * 1000, t_last_at[i], t_release_at[i] - t_spare[i]) end;
      if v_given > t_late_count[i] then
        t_mark_at[i] := m_at[v_at];
        t_mark_id[i] := m_id[v_at];
      end if;
      if t_late_at[i] is not null then
        if v_given >= t_late_count[i] then
          t_late_at[i] := null; t_late_id[i] := null; t_late_to[i] := null; t_late_to_id[i] := null;
        elsif v_given > 0 then
          t_late_at[i] := m_at[v_at]; t_late_id[i] := m_id[v_at];
        end if;
      end if;
    end if;
    if t_is_paused[i] then
      t_next_at[i] := null;
    elsif t_free[i] <= v_given then
      -- Full. A completion's wake brings it back, except those that nobody reports.
      t_next_at[i] := case when t_has_uncapped[i] then v_now + 200000 end;
    end if;
  end loop;

  update turn t set version = t.version + 1, next_at = u.next_at, last_at = u.last_at, release_at = coalesce(u.release_at, 0),
    mark_at = u.mark_at, mark_id = u.mark_id, late_at = u.late_at, late_id = u.late_id, late_to = u.late_to,
    late_to_id = u.late_to_id,
    in_flight = u.in_flight, waiting = u.waiting, wake_id = u.wake_id, has_uncapped = u.has_uncapped
  from unnest(t_tid, t_next_at, t_last_at, t_release_at, t_mark_at, t_mark_id, t_late_at, t_late_id, t_late_to, t_late_to_id,
    t_in_flight, t_waiting, t_wake_id, t_has_uncapped) u(tid, next_at, last_at, release_at, mark_at, mark_id, late_at, late_id,
    late_to, late_to_id, in_flight, waiting, wake_id, has_uncapped)
  where t.ctid = u.tid;
  if v_nameless is not null then
    perform channel_keep(v_nameless);
  end if;
  if v_wakes <> '{}' then
    delete from wake w where w.ctid = any(v_wakes);
  end if;
  if l_tid = '{}' then
    return;
  end if;
  if v_has_rounds and l_turn[1] <> l_turn[cardinality(l_turn)] then
    -- A turn is worked after the others' turn, also within the reply.
    select array_agg(o.tid order by o.round, o.turn, o.place), array_agg(o.id order by o.round, o.turn, o.place),
      array_agg(o.turn order by o.round, o.turn, o.place)
    into l_tid, l_id, l_turn
    from (
      select u.tid, u.id, u.turn, u.place,
        (row_number() over (partition by u.turn order by u.place) - 1) / t_weight[u.turn] as round
      from unnest(l_tid, l_id, l_turn) with ordinality u(tid, id, turn, place)
    ) o;
  end if;
  if v_bytes > p_content_bytes then
    fits := reply_fits(l_tid, p_content_bytes);
  end if;
  leased_at := v_now;
  content_bytes := v_bytes;
  row_bytes := cardinality(l_tid) * (110 + v_name_bytes);
  messages := l_tid;
  ids := l_id;
  if v_count = 1 then
    channels := array_fill(t_name[1], array[cardinality(l_tid)]);
    channel_ids := array_fill(t_channel_id[1], array[cardinality(l_tid)]);
    is_capped := array_fill(t_is_capped[1], array[cardinality(l_tid)]);
    max_attempts := array_fill(t_max_attempts[1], array[cardinality(l_tid)]);
  else
    foreach v_at in array l_turn loop
      channels := channels || t_name[v_at];
      channel_ids := channel_ids || t_channel_id[v_at];
      is_capped := is_capped || t_is_capped[v_at];
      max_attempts := max_attempts || t_max_attempts[v_at];
    end loop;
  end if;
end
$$;
