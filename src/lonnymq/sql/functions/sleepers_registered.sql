-- sleepers_registered: a row if a worker may be asleep, so that producers must notify. Ask in a statement that begins
-- after the transaction has written what it announces: only then does the statement see every sleeper that does not see
-- the transaction (see queue_horizon). Outside READ COMMITTED the snapshot may be older, so there is always a row.
-- PostgreSQL inlines this function. Costs one index probe if there are none.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function sleepers_registered() returns setof boolean
language sql stable
as $$
  select true
  where current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') or exists (
    select from sleeper s
    where s.until > (extract(epoch from clock_timestamp()) * 1000000)::bigint
    order by s.until desc limit 1
  )
$$;
