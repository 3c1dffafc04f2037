-- channel_due: up to p_limit channels that have a message to release now, those that have waited longest first: how
-- long they have been due, and how many messages could be released now if there were workers, within caps and rate
-- limits. Paused channels and channels at their limits have none.
-- It looks at p_limit turns that are due, as many that return from idleness, and as many wakes of each lane.
-- has_more: these were not all.
-- Reads:  turn, wake, channel, message.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_due(p_limit integer)
returns table (channel_id bigint, due_at bigint, demand bigint, has_more boolean)
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_now constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
begin
  return query
  with unread as materialized (
    (select w.* from wake w where w.lane = 0 order by w.lane, w.id limit p_limit + 1)
    union all
    (select w.* from wake w where w.lane = 1 order by w.lane, w.id limit p_limit + 1)
  ),
  woken as materialized (
    select w.channel_id, sum(w.waiting)::bigint as waiting, sum(w.done)::bigint as done,
      min(w.message_id) as message_id, min(case when w.at is null then v_now else w.at * 1000 end) as due_at
    from unread w
    group by w.channel_id
  ),
  -- The figures of wakes are added up here and not joined later: the planner expects few of them, and would compare
  -- each channel with each wake.
  found as materialized (
    select f.channel_id, min(f.due_at) as due_at, sum(f.waiting)::bigint as waiting, sum(f.done)::bigint as done,
      min(f.message_id) as message_id, bool_or(f.is_woken) as is_woken,
      count(*) over () > p_limit
        or (
          select count(*) filter (where w.lane = 0) > p_limit or count(*) filter (where w.lane = 1) > p_limit
          from unread w
        )
        as has_more
    from (
      (
        select t.channel_id, t.next_at as due_at, 0 as waiting, 0 as done, null::bigint as message_id,
          false as is_woken
        from turn t where t.next_at <= v_now order by t.next_at limit p_limit + 1
      )
      union all
      (
        select t.channel_id, t.return_at, 0, 0, null, false
        from turn t where t.return_at <= v_now order by t.return_at limit p_limit + 1
      )
      union all
      select w.channel_id, case when w.due_at <= v_now then w.due_at end, w.waiting, w.done, w.message_id, true
      from woken w
    ) f
    group by f.channel_id
    having min(f.due_at) is not null
    order by 2 limit p_limit
  )
  select s.channel_id, s.due_at, s.demand, s.has_more
  from (
    select f.channel_id, f.has_more,
      -- The time of a message with a priority says nothing: it has been due since it was created.
      least(v_now, greatest(t.last_at, least(t.next_at, t.return_at,
        case when f.is_woken then coalesce(
          (select greatest(m.dequeue_at, m.created_at) * 1000 from message m where m.id = f.message_id), v_now) end)))
        as due_at,
      case when c.is_paused then 0 else least(
        case when b.newest_at * 1000 <= v_now then coalesce(t.waiting, 0) + f.waiting
          -- Some are scheduled: count up to 100 that are not.
          else (
            select count(*) from (
              select from message m
              where m.channel_id = f.channel_id and m.dequeue_at <= v_now / 1000
                and ((m.dequeue_at, m.id + 0) > (t.mark_at, t.mark_id)) is not false
              order by m.dequeue_at, m.id + 0 limit 100
            ) m
          ) end,
        c.max_concurrency - coalesce(t.in_flight, 0) + f.done,
        (v_now + c.release_burst * c.release_interval_ms * 1000 - turn_release_at(coalesce(t.release_at, 0),
          coalesce(t.last_at, 0), c.release_burst * c.release_interval_ms * 1000, v_now))
          / (c.release_interval_ms * 1000)
      ) end as demand
    from found f
    left join lateral (
      select t.* from turn t where t.channel_id = f.channel_id order by t.version desc limit 1
    ) t on true
    cross join lateral (
      select
        -- effective policy: written by tools/policy.py
        nullif(coalesce(c.max_concurrency, s.max_concurrency), -1) as max_concurrency,
        nullif(coalesce(c.release_interval_ms, s.release_interval_ms), -1) as release_interval_ms,
        coalesce(c.release_burst, s.release_burst, 1) as release_burst,
        coalesce(c.weight, s.weight, 1) as weight,
        nullif(coalesce(c.max_size, s.max_size), -1) as max_size,
        nullif(coalesce(c.max_attempts, s.max_attempts), -1) as max_attempts,
        c.is_paused
        -- end of effective policy
      from setting s left join channel c on c.id = f.channel_id where s.is_only
      offset 0
    ) c
    left join lateral (
      select m.dequeue_at as newest_at from message m
      where m.channel_id = f.channel_id order by m.dequeue_at desc, m.id + 0 desc limit 1
    ) b on true
  ) s
  where s.demand > 0
  order by s.due_at, s.channel_id;
end
$$;
