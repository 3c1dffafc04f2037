-- queue_horizon: transactions below oldest have ended, those from newest on have not begun.
-- A worker that has registered as a sleeper, and committed that, remembers newest, and must go on asking for messages
-- until oldest has reached it: whoever began before may not have seen the registration.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_horizon(out oldest bigint, out newest bigint)
language sql volatile security definer
set search_path from current
as $$
  select (pg_snapshot_xmin(s)::text)::bigint, (pg_snapshot_xmax(s)::text)::bigint from pg_current_snapshot() s
$$;
