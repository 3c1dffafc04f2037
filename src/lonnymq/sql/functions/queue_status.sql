-- queue_status: the queue at a glance, in figures that are cheap to compute.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_status(
  out channels bigint, out waiting bigint, out leased bigint, out expired bigint, out dead bigint,
  out unfolded_wakes bigint, out sleepers bigint, out history text, out history_overflow bigint,
  out oldest_transaction interval, out version integer
)
language sql stable security definer
set search_path from current
as $$
  select (select count(*) from channel)
      -- A channel that no dequeue has seen yet is known only by its wakes.
      + (select count(distinct w.channel_id) from wake w
        where w.channel_name is not null and not exists (select from channel c where c.id = w.channel_id)),
    -- messages - leases. A lease whose message was cancelled makes it one too small, hence the 0.
    greatest(0, (select coalesce(sum(t.waiting), 0) from turn t) + (select coalesce(sum(w.waiting), 0) from wake w)),
    (select count(*) from lease),
    (select count(*) from lease l where l.unlock_at < extract(epoch from clock_timestamp()) * 1000000),
    (select count(*) from dead), (select count(*) from wake),
    (select count(distinct s.worker) from sleeper s where s.until > extract(epoch from clock_timestamp()) * 1000000),
    (select s.history from setting s), (select count(*) from history_overflow),
    (select max(clock_timestamp() - a.xact_start) from pg_stat_activity a where a.datname = current_database()),
    (select max(m.version) from migration m)
$$;
