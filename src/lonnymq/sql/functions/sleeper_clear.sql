-- sleeper_clear: this worker sleeps no more.
-- Locks:  its registrations, skipping locked ones.
-- Writes: sleeper (delete).
create or replace function sleeper_clear(p_worker text) returns void
language plpgsql security definer
set search_path from current
as $$
declare
  v_old tid[];
begin
  select array_agg(s.ctid) into v_old from (
    select ctid from sleeper where worker = p_worker for update skip locked
  ) s;
  delete from sleeper s where s.ctid = any(v_old);
end
$$;
