-- sleepers_notify: notify workers that may be asleep. Costs one index probe if there are none.
-- Outside READ COMMITTED it always notifies, because the snapshot may be older than the registration of a sleeper.
-- Locks:  nothing until the commit; if it notifies, the lock that NOTIFY takes at commit.
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
    perform pg_notify(queue_event_name(s.salt), '') from setting s where s.is_only;
  end if;
end
$$;
