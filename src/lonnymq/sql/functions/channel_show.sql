-- channel_show: the rows of channel_status for these channels, in the order given. Unlike a query of the view, it
-- reads nothing of other channels, except their leases.
-- Returns a row for each channel that exists.
-- Reads:  channel, turn, wake, lease, message.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_show(p_ids bigint[]) returns setof channel_status
language sql stable
as $$
  select c.name,
    -- channel figures: written by tools/policy.py from views/channel_status.sql
    greatest(n.waiting, 0) as waiting, n.is_partial as is_waiting_partial, coalesce(l.leased, 0) as leased,
    h.id as head_id, h.dequeue_at as head_dequeue_at, h.created_at as head_created_at,
    case when c.release_interval_ms is not null and n.release_at > n.now then from_epoch(n.release_at / 1000) end
      as next_release_at,
    from_epoch(nullif(n.last_at, 0) / 1000) as last_release_at, r.reason,
    case when r.reason = 'ready'
      then from_epoch(least(greatest(h.dequeue_at, h.created_at, n.last_at / 1000), n.now / 1000)) end as ready_at,
    coalesce(n.released, 0) as released, coalesce(n.waited_ms, 0) as waited_ms, c.created_at,
    c.policy_sources,
    -- end of channel figures
    -- policy columns: written by tools/policy.py from model/policy.py
    c.max_concurrency, c.release_interval_ms, c.release_burst, c.weight, c.max_size, c.max_attempts, c.is_paused
    -- end of policy columns
  from unnest(p_ids) with ordinality u(id, ordinal)
  cross join lateral (
    select c.id, c.name, c.created_at,
      jsonb_build_object(
        -- policy sources: written by tools/policy.py
        'max_concurrency',
          case when c.max_concurrency = -1 then 'lifted' when c.max_concurrency is not null then 'own'
            when s.max_concurrency is not null then 'default' else 'unset' end,
        'release_interval_ms',
          case when c.release_interval_ms = -1 then 'lifted' when c.release_interval_ms is not null then 'own'
            when s.release_interval_ms is not null then 'default' else 'unset' end,
        'release_burst',
          case when c.release_burst is not null then 'own'
            when s.release_burst is not null then 'default' else 'unset' end,
        'weight',
          case when c.weight is not null then 'own'
            when s.weight is not null then 'default' else 'unset' end,
        'max_size',
          case when c.max_size = -1 then 'lifted' when c.max_size is not null then 'own'
            when s.max_size is not null then 'default' else 'unset' end,
        'max_attempts',
          case when c.max_attempts = -1 then 'lifted' when c.max_attempts is not null then 'own'
            when s.max_attempts is not null then 'default' else 'unset' end
        -- end of policy sources
      ) as policy_sources,
      -- effective policy: written by tools/policy.py
      nullif(coalesce(c.max_concurrency, s.max_concurrency), -1) as max_concurrency,
      nullif(coalesce(c.release_interval_ms, s.release_interval_ms), -1) as release_interval_ms,
      coalesce(c.release_burst, s.release_burst, 1) as release_burst,
      coalesce(c.weight, s.weight, 1) as weight,
      nullif(coalesce(c.max_size, s.max_size), -1) as max_size,
      nullif(coalesce(c.max_attempts, s.max_attempts), -1) as max_attempts,
      c.is_paused
      -- end of effective policy
    from (
      (select c.* from channel c where c.id = u.id)
      union all
      -- A channel that no dequeue has seen yet.
      (
        select w.channel_id, w.channel_name, null,
          -- unset policy: written by tools/policy.py from model/policy.py
          null, null, null, null, null, null, false
          -- end of unset policy
        from wake w where w.channel_id = u.id and w.channel_name is not null order by w.id limit 1
      )
    ) c
    cross join setting s
    limit 1
  ) c
  left join lease_counts(p_ids) l on l.channel_id = u.id
  -- channel joins: written by tools/policy.py from views/channel_status.sql
  cross join lateral (
    select coalesce(t.waiting, 0) + coalesce(w.waiting, 0) as waiting, w.wakes = 1000 as is_partial, t.last_at,
      t.released, t.waited_ms,
      -- As in turn_release_at: never more than a burst after the last release.
      case when t.release_at > d.now then
        least(t.release_at, least(t.last_at, d.now) + c.release_burst * c.release_interval_ms * 1000)
          - (c.release_burst - 1) * c.release_interval_ms * 1000 end as release_at,
      d.now
    from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now) d
    left join lateral (
      select * from turn t where t.channel_id = c.id order by t.version desc limit 1
    ) t on true
    -- While no worker runs, a channel may have any number of wakes.
    cross join lateral (
      select sum(w.waiting) as waiting, count(*) as wakes
      from (select w.waiting from wake w where w.channel_id = c.id order by w.id limit 1000) w
    ) w
  ) n
  left join lateral (
    select m.id, m.dequeue_at, m.created_at from message m
    -- The planner estimates that coalesce(...) is true for half of the rows. It would estimate "is null" as rare, and
    -- then read and sort the whole channel.
    where m.channel_id = c.id and coalesce((select false from lease l where l.message_id = m.id), true)
    order by m.dequeue_at, m.id + 0 limit 1
  ) h on true
  cross join lateral (
    select case
      when h.id is null then 'empty'
      when c.is_paused then 'paused'
      when coalesce(l.leased, 0) >= c.max_concurrency then 'capped'
      -- A message whose time is not after its creation is not scheduled: the clock has stepped back since.
      when h.dequeue_at * 1000 > n.now and h.dequeue_at > h.created_at then 'scheduled'
      when c.release_interval_ms is not null and n.release_at > n.now then 'throttled'
      else 'ready'
    end as reason
  ) r
  -- end of channel joins
  order by u.ordinal
$$;
