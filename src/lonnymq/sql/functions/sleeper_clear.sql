-- sleeper_clear: end this worker's registration as a sleeper: producers need not notify it any more.
-- Locks:  its registrations, skipping locked ones.
-- Writes: sleeper (delete).
create or replace function sleeper_clear(p_worker text) returns void
language plpgsql security definer
set search_path from current
as $$
declare
  v_registrations tid[];
begin
  select array_agg(s.ctid) into v_registrations from (
    select ctid from sleeper where worker = p_worker for update skip locked
  ) s;
  delete from sleeper s where s.ctid = any(v_registrations);
end
$$;
