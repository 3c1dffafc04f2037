-- sleeper_register: register a worker as a sleeper: for the next p_for_ms producers notify, because it may be asleep.
-- Locks:  its earlier registrations and expired ones, skipping locked ones.
-- Writes: sleeper.
create or replace function sleeper_register(p_worker text, p_for_ms bigint) returns void
language plpgsql security definer
set search_path from current
as $$
declare
  v_now constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_old tid[];
begin
  if p_worker is null or length(p_worker) not between 1 and 255 then
    perform reject('worker', p_worker, '1 to 255 characters');
  elsif p_for_ms is null or p_for_ms not between 1 and 3600000 then
    perform reject('for_ms', p_for_ms::text, 'between 1 and 3600000 (an hour)');
  end if;
  select array_agg(s.ctid) into v_old from (
    select ctid from sleeper where until < v_now or worker = p_worker limit 100 for update skip locked
  ) s;
  delete from sleeper s where s.ctid = any(v_old);
  insert into sleeper (worker, until) values (p_worker, v_now + p_for_ms * 1000);
end
$$;
