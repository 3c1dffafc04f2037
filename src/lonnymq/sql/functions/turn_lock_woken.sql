-- turn_lock_woken: read the next wakes of a lane and lock the turns of their channels, at most p_limit + 8; if
-- p_may_insert, insert turns for channels that have none. Part of message_dequeue.
-- p_window: how many wakes to read at first. p_end_id: the newest wake when a full scan began.
-- Returns
--   pass          where to continue reading the lane
--   turns         the locked turns
--   wake_id       the lowest wake found; null if there was none
--   min_next_at   none of these channels will have a turn with a lower next_at
--   is_busy       other transactions hold some of the turns
--   has_inserted  new turns were inserted
--   is_returning  some of the channels were idle, or are new
-- Reads:  wake, turn.
-- Locks:  turns, skipping locked ones; as turn_insert.
-- Writes: channel, turn (insert), on first use of a channel.
create or replace function turn_lock_woken(
  p_lane integer, inout pass lane_pass, p_limit integer, p_window integer, p_end_id bigint, p_may_insert boolean,
  out turns tid[], out wake_id bigint, out min_next_at bigint, out is_busy boolean, out has_inserted boolean,
  out is_returning boolean
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_channel_ids bigint[];
  v_wake_ids bigint[];  -- the first wake of each channel
  v_min_at bigint;      -- the earliest dequeue_at that the wakes announce
  v_count integer;
  v_last_wake_id bigint;
  v_is_end boolean;
  v_inserted tid[];
begin
  -- The wakes of a few channels may fill the window and hide the other channels behind them: then read a larger window.
  for v_try in 1..6 loop
    select array_agg(s.channel_id), array_agg(s.id), min(coalesce(s.at, -9000000000000000))
    into v_channel_ids, v_wake_ids, v_min_at
    from (
      -- A wake that asks for a look has no time, because the turn may be due since it was last served.
      select id, channel_id, case when done = 0 then at end as at from wake
      where lane = p_lane and id >= pass.next_id
      order by lane, id limit p_window << (v_try - 1)
    ) s;
    if v_channel_ids is null then
      -- The end of the pass. The next one starts a little lower, for wakes that are committed out of order.
      pass := row(coalesce(pass.lowest_id - 64, p_end_id - 64, pass.next_id), null, null);
      return;
    end if;
    v_count := cardinality(v_channel_ids);
    v_last_wake_id := v_wake_ids[v_count];
    if v_count > 1 then
      select array_agg(g.id order by g.wake_id), array_agg(g.wake_id order by g.wake_id) into v_channel_ids, v_wake_ids
      from (
        select u.id, min(u.wake_id) as wake_id from unnest(v_channel_ids, v_wake_ids) u(id, wake_id) group by u.id
      ) g;
    end if;
    exit when v_count < p_window << (v_try - 1) or cardinality(v_channel_ids) > p_limit;
  end loop;
  wake_id := v_wake_ids[1];
  pass.lowest_id := least(pass.lowest_id, wake_id);
  if cardinality(v_channel_ids) > p_limit + 8 then
    pass.next_id := v_wake_ids[p_limit + 9];
    v_channel_ids := v_channel_ids[1:p_limit + 8];
    v_is_end := false;
  else
    pass.next_id := v_last_wake_id + 1;
    v_is_end := v_count < p_window;
  end if;
  if v_is_end or pass.next_id > pass.stop_id then
    -- The end of the pass. A long pass may have skipped wakes meanwhile: the next one starts at the beginning of the
    -- lane.
    pass := row(case when pass.stop_id is null then pass.lowest_id - 64 else 0 end, null, null);
  elsif pass.stop_id is null then
    pass.stop_id := (select last_value from wake_id_seq);
  end if;

  -- Find the newest version of each turn first and then lock that tuple: a lock by channel_id would visit dead
  -- versions.
  select array_agg(s.ctid), min(greatest(s.last_at, v_min_at * 1000)),
    bool_or(s.next_at is null and s.waiting <= 0 or s.return_at is not null)
  into turns, min_next_at, is_returning
  from (
    select ctid, last_at, next_at, waiting, return_at from turn
    where ctid = any(array(
      select (select t.ctid from turn t where t.channel_id = c.id order by t.version desc limit 1)
      from unnest(v_channel_ids) c(id)
    ))
    for update skip locked
  ) s;
  if coalesce(cardinality(turns), 0) < cardinality(v_channel_ids) then
    v_inserted := case when p_may_insert then turn_insert(v_channel_ids) end;
    if v_inserted is not null then
      has_inserted := true;
      is_returning := true;
      turns := coalesce(turns, '{}') || v_inserted;
      min_next_at := 0;
    end if;
    if p_lane = 1 and pass.lowest_id is null and (not p_may_insert or cardinality(v_inserted) = 128) then
      -- There may be more new channels than one call inserts turns for: read the lane once more.
      pass.lowest_id := pass.next_id;
    end if;
    is_busy := coalesce(cardinality(turns), 0) < cardinality(v_channel_ids);
  end if;
end
$$;
