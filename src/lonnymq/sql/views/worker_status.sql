-- worker_status: each process of a worker, as it last reported itself. One that has not reported for 15 seconds, or
-- whose session is gone, is gone; it is shown for an hour.
create or replace view worker_status as
select p.name as worker,
  case
    when p.now - p.seen_at > 15000000 or p.has_session and not exists (
      select from worker w where w.name = p.name and (w.gone_since is null or p.now - w.gone_since < 1000000)
    ) then 'gone'
    when p.is_draining or p.drain_at is not null then 'draining'
    else 'working'
  end as state,
  p.host, p.pid, p.version, p.tasks, p.slots, p.busy, p.held, p.message_ids, p.channels,
  array(select from_epoch(u / 1000) from unnest(p.leased_ats) with ordinality a(u, n) order by n) as leased_ats,
  from_epoch(p.started_at / 1000) as started_at, from_epoch(p.seen_at / 1000) as seen_at,
  from_epoch(p.drain_at / 1000) as drain_at
from (
  select p.*, (extract(epoch from clock_timestamp()) * 1000000)::bigint as now from worker_process p
) p
where abs(p.now - p.seen_at) <= 3600000000;
