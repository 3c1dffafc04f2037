-- worker_leave: end a worker's registration, because it stops and holds no leases. A worker that still holds some
-- closes its session instead.
-- p_secret: see require_worker.
-- Locks:  the worker's row; skips it if it is locked.
-- Writes: worker (delete).
create or replace function worker_leave(p_worker text, p_secret text) returns void
language plpgsql security definer
set search_path from current
as $$
declare
  v_row tid;
begin
  perform require_worker(p_worker, p_secret);
  perform set_config('synchronous_commit', 'off', true);
  select w.ctid into v_row from worker w where w.name = p_worker for update skip locked;
  delete from worker w where w.ctid = v_row;
end
$$;
