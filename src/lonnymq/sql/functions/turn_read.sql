-- turn_read: read these turns, their wakes and their channels' policies, and assess them (see turn_assess). Inlined
-- into the statement that calls it, whose snapshot then shows policies no older than the wakes that announce their
-- changes. Each step reads one table by one index (lateral … offset 0), so that the planner has nothing to choose.
-- p_default is the queue's settings, or null if no policy depends on them (see policy_change). A channel without a row
-- gets no policy at all.
-- p_wake_id is the lowest wake known to the caller. Wakes are read from it or from just below turn.wake_id, whichever
-- is lower: a wake below that is rare, and is folded later.
-- Reads:  turn, channel, wake, lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_read(
  p_turns tid[], p_wake_id bigint, p_quantum integer, p_default setting, p_now bigint
)
returns setof turn_state
language sql stable
as $$
  select (turn_assess(t.ctid, t, row(c.*)::channel, w, l.uncapped, p_quantum, p_now)).*
  from turn t
  left join lateral (
    select c.id, c.name, c.created_at,
      -- effective policy: written by tools/policy.py
      nullif(coalesce(c.max_concurrency, p_default.max_concurrency), -1) as max_concurrency,
      nullif(coalesce(c.release_interval_ms, p_default.release_interval_ms), -1) as release_interval_ms,
      coalesce(c.release_burst, p_default.release_burst, 1) as release_burst,
      coalesce(c.weight, p_default.weight, 1) as weight,
      nullif(coalesce(c.max_size, p_default.max_size), -1) as max_size,
      nullif(coalesce(c.max_attempts, p_default.max_attempts), -1) as max_attempts,
      c.is_paused
      -- end of effective policy
    from channel c where c.id = t.channel_id
    offset 0
  ) c on true
  cross join lateral wake_total(t, least(t.wake_id - 64, p_wake_id), p_now) w
  cross join lateral (
    select case when c.max_concurrency is not null and t.has_uncapped then lease_count_uncapped(t.channel_id) else 0 end
      as uncapped
    offset 0
  ) l
  where t.ctid = any(p_turns)
  offset 0
$$;
