-- queue_activity: how many messages were created, leases taken and leases ended since PostgreSQL began to count, and the
-- time. Two readings make a rate. The counts come about a second late, and count what was rolled back too.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_activity(out created bigint, out leased bigint, out ended bigint, out at timestamptz)
language sql stable security definer
set search_path from current
as $$
  select pg_stat_get_tuples_inserted('message'::regclass), pg_stat_get_tuples_inserted('lease'::regclass),
    pg_stat_get_tuples_deleted('lease'::regclass), clock_timestamp()
$$;
