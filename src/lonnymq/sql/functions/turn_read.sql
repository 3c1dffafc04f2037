-- turn_read: read these turns, their wakes and their channels' policies, and assess them (see turn_assess). Inlined into
-- the statement that calls it: the policy is then as new as the wakes that announce it. Each step reads one table by one
-- index (lateral … offset 0), so that no plan can go wrong.
-- p_wake_id is the lowest wake known. A wake lower than those a turn has added before is rare, and late.
-- Reads:  turn, channel, wake, lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_read(p_turns tid[], p_wake_id bigint, p_now bigint) returns setof turn_state
language sql stable
as $$
  select (turn_assess(t.ctid, t, row(c.*)::channel, k, u.uncapped, p_now)).*
  from turn t
  left join lateral (select * from channel c where c.id = t.channel_id offset 0) c on true
  cross join lateral wake_total(t, least(t.wake_id - 64, p_wake_id), p_now) k
  cross join lateral (
    select case when c.max_concurrency is not null and t.has_uncapped then lease_uncapped(t.channel_id) else 0 end as uncapped
    offset 0
  ) u
  where t.ctid = any(p_turns)
  offset 0
$$;
