-- turn_lock_woken: read the next wakes of a lane, and lock the turns of their channels, p_limit + 8 at most; make turns for
-- channels that have none, if p_may_create. Part of message_dequeue.
-- Returns
--   pass         where to go on reading the lane
--   turns        the locked turns
--   wake_id      the lowest wake found; null if there was none
--   low          no turn of these will have a lower next_at
--   is_busy      other transactions hold some of them
--   has_created  turns were made
-- p_end: the last wake there was when a full look began.
-- Reads:  wake, turn.
-- Locks:  turns, skipping locked ones; what turn_birth locks.
-- Writes: channel, turn (insert), on first use of a channel.
create or replace function turn_lock_woken(
  p_lane integer, inout pass lane_pass, p_limit integer, p_window integer, p_end bigint, p_may_create boolean,
  out turns tid[], out wake_id bigint, out low bigint, out is_busy boolean, out has_created boolean
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_channels bigint[];
  v_firsts bigint[];  -- the first wake of each channel
  v_at bigint;
  v_count integer;
  v_last bigint;
  v_is_end boolean;
  v_created tid[];
begin
  -- A few channels may fill the window and hide others behind it: read on in larger ones.
  for v_try in 1..6 loop
    select array_agg(s.channel_id), array_agg(s.id), min(coalesce(s.at, -9000000000000000)) into v_channels, v_firsts, v_at
    from (
      select id, channel_id, at from wake
      where lane = p_lane and id >= pass.next_id
      order by lane, id limit p_window << (v_try - 1)
    ) s;
    if v_channels is null then
      -- The end of the pass.
      pass := row(coalesce(pass.low_id - 64, p_end - 64, pass.next_id), null, null);
      return;
    end if;
    v_count := cardinality(v_channels);
    v_last := v_firsts[v_count];
    if v_count > 1 then
      select array_agg(g.id order by g.first), array_agg(g.first order by g.first) into v_channels, v_firsts
      from (select u.id, min(u.first) as first from unnest(v_channels, v_firsts) u(id, first) group by u.id) g;
    end if;
    exit when v_count < p_window << (v_try - 1) or cardinality(v_channels) > p_limit;
  end loop;
  wake_id := v_firsts[1];
  pass.low_id := least(pass.low_id, wake_id);
  if cardinality(v_channels) > p_limit + 8 then
    pass.next_id := v_firsts[p_limit + 9];
    v_channels := v_channels[1:p_limit + 8];
    v_is_end := false;
  else
    pass.next_id := v_last + 1;
    v_is_end := v_count < p_window;
  end if;
  if v_is_end or pass.next_id > pass.stop_id then
    -- The end of the pass. After a long one, wakes that were passed over meanwhile are looked at first.
    pass := row(case when pass.stop_id is null then pass.low_id - 64 else 0 end, null, null);
  elsif pass.stop_id is null then
    pass.stop_id := (select last_value from wake_id_seq);
  end if;

  -- Find the newest version of each turn first, then lock that place, so that nobody walks over dead versions.
  select array_agg(s.ctid), min(greatest(s.last_at, v_at * 1000)) into turns, low
  from (
    select ctid, last_at from turn
    where ctid = any(array(
      select (select t.ctid from turn t where t.channel_id = c.id order by t.version desc limit 1)
      from unnest(v_channels) c(id)
    ))
    for update skip locked
  ) s;
  if coalesce(cardinality(turns), 0) < cardinality(v_channels) then
    v_created := case when p_may_create then turn_birth(v_channels) end;
    if v_created is not null then
      has_created := true;
      turns := coalesce(turns, '{}') || v_created;
      low := 0;
    end if;
    if p_lane = 1 and pass.low_id is null and (not p_may_create or cardinality(v_created) = 128) then
      -- There may be more new channels than one call creates: read the lane once more.
      pass.low_id := pass.next_id;
    end if;
    is_busy := coalesce(cardinality(turns), 0) < cardinality(v_channels);
  end if;
end
$$;
