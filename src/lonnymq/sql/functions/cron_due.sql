-- cron_due: the crons whose next tick is due by the database's clock, or has not been computed yet: all that were not
-- declared in a program's code, and the declared ones that p_names lists. p_now replaces the clock where time is
-- simulated.
-- Returns a row per cron, the earliest first; if there are none, one row without a name, with the milliseconds until
-- the next one is due (null: there is none). now_at is the clock: the caller decides the ticks after mark_at up to
-- now_at and reports them to cron_tick.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function cron_due(
  p_names text[] default '{}', p_limit integer default 100, p_now timestamptz default null
) returns table (
  now_at timestamptz, wait_ms bigint, name text, expression text, timezone text, catch_up text, mark_at timestamptz,
  content_bytes integer
)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_now constant timestamptz := coalesce(p_now, clock_timestamp());
  v_next_at timestamptz;
begin
  perform require_batch(p_limit);
  if p_names is null then
    perform reject('names', null, 'an array');
  end if;
  perform require_cron_instant('now', v_now);
  -- Two searches, so that each reads only the beginning of the index.
  return query
  (select v_now, 0::bigint, c.name, c.expression, c.timezone, c.catch_up, c.mark_at, octet_length(c.content)
  from cron c
  where not c.is_paused and c.next_at is null and (not c.is_declared or c.name = any(p_names))
  limit p_limit)
  union all
  (select v_now, 0::bigint, c.name, c.expression, c.timezone, c.catch_up, c.mark_at, octet_length(c.content)
  from cron c
  where not c.is_paused and c.next_at <= v_now and (not c.is_declared or c.name = any(p_names))
  order by c.next_at limit p_limit)
  limit p_limit;
  if not found then
    select c.next_at into v_next_at from cron c
    where not c.is_paused and c.next_at > v_now and (not c.is_declared or c.name = any(p_names))
    order by c.next_at limit 1;
    return query
    select v_now, ceil(extract(epoch from v_next_at - v_now) * 1000)::bigint, null::text, null::text, null::text,
      null::text, null::timestamptz, null::integer;
  end if;
end
$$;
