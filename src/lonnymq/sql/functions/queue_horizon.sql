-- queue_horizon: transactions below oldest have ended, those from newest on have not begun.
-- newest is an id taken for it: the end of a snapshot may be below transactions that have begun and not ended.
-- A worker that has registered as a sleeper, and committed that, remembers newest, and must go on asking for messages
-- until oldest has reached it: whoever began before may not have seen the registration.
-- Locks:  nothing.
-- Writes: nothing, but takes a transaction id.
create or replace function queue_horizon(out oldest bigint, out newest bigint)
language sql volatile security definer
set search_path from current
as $$
  select (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint, (pg_current_xact_id()::text)::bigint
$$;
