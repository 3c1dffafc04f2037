-- queue_activity: how many messages were created, leases taken and leases ended since PostgreSQL began to count, and
-- when this was read. Two readings give a rate. The counts lag by about a second and include what was rolled back.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_activity(out created bigint, out leased bigint, out ended bigint, out at timestamptz)
language sql stable security definer
set search_path from current
as $$
  select pg_stat_get_tuples_inserted('message'::regclass), pg_stat_get_tuples_inserted('lease'::regclass),
    pg_stat_get_tuples_deleted('lease'::regclass), clock_timestamp()
$$;
