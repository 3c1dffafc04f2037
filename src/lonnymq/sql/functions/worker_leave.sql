-- worker_leave: end a worker's registration and forget its reports, because it stops and holds no leases. A worker that
-- still holds some closes its session instead.
-- p_secret: see require_worker.
-- Locks:  the worker's rows; skips those that are locked.
-- Writes: worker, worker_process (delete).
create or replace function worker_leave(p_worker text, p_secret text) returns void
language plpgsql security definer
set search_path from current
as $$
declare
  v_row tid;
  v_process tid;
begin
  perform require_worker(p_worker, p_secret);
  perform set_config('synchronous_commit', 'off', true);
  select w.ctid into v_row from worker w where w.name = p_worker for update skip locked;
  select p.ctid into v_process from worker_process p where p.name = p_worker for update skip locked;
  delete from worker w where w.ctid = v_row;
  delete from worker_process p where p.ctid = v_process;
end
$$;
