-- sleepers_notify: notify workers that may be asleep. Costs one index probe if there are none.
-- Outside READ COMMITTED it always notifies, because the snapshot may be older than the registration of a sleeper.
-- Locks:  nothing until the commit; if it notifies, the lock that NOTIFY takes at commit.
-- Writes: nothing.
create or replace function sleepers_notify() returns void
language plpgsql
as $$
begin
  if exists (select from sleepers_registered()) then
    perform pg_notify(queue_event_name(s.salt), '') from setting s where s.is_only;
  end if;
end
$$;
