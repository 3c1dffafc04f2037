-- queue_horizon: all transactions below oldest have ended; none from newest on has begun.
-- newest is an id assigned by this call: the upper end of a snapshot would not do, because it may be below transactions
-- that are still in progress.
-- A worker registers as a sleeper, commits, and remembers newest. Transactions below that may not have seen its
-- registration, so the worker must go on asking for messages until oldest has reached that number.
-- Locks:  nothing.
-- Writes: nothing, but takes a transaction id.
create or replace function queue_horizon(out oldest bigint, out newest bigint)
language sql volatile security definer
set search_path from current
as $$
  select (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint, (pg_current_xact_id()::text)::bigint
$$;
