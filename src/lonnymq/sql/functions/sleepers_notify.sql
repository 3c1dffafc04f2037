-- sleepers_notify: wake workers that may be asleep; costs one index probe when nobody is.
-- Outside READ COMMITTED the snapshot may be older than a sleeper, so there it always notifies.
-- Locks:  nothing until commit, and there only if somebody sleeps.
-- Writes: nothing.
create or replace function sleepers_notify() returns void
language plpgsql
as $$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') or exists (
    select from sleeper s
    where s.until > (extract(epoch from clock_timestamp()) * 1000000)::bigint
    order by s.until desc limit 1
  ) then
    perform pg_notify(queue_event(), '');
  end if;
end
$$;
