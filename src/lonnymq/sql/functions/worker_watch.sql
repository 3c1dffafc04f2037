-- worker_watch: notice workers whose session is gone, and end the leases of those that do not return in time: they
-- expire now, and the next dequeue treats them like any expired lease (see lease_expire). Every worker calls it, each
-- the more rarely the more workers there are.
--
-- A worker may return for a second, and for ten seconds if the server was restarted or failed over, because then all
-- sessions have ended at once. For ten more seconds its leases are looked for, once per second: a dequeue that it had
-- sent before it died may still commit. Locked leases are skipped, and found again by the next look.
-- Returns in how many milliseconds this caller should call again, and the leases that it has ended and their workers.
-- Reads:  worker, the locks of all sessions; lease, if a worker is gone.
-- Locks:  workers that are gone, and their leases, at most 1000, skipping locked ones.
-- Writes: worker, lease.
create or replace function worker_watch(out wait_ms bigint, out leases bigint, out workers text[])
language plpgsql security definer
set search_path from current
set jit = off
as $$
declare
  c_limit constant integer := 1000;
  c_grace constant bigint := 1000000;
  c_restart_grace constant bigint := 10000000;
  c_look_every constant bigint := 1000000;
  c_look_for constant bigint := 10000000;
  v_now constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_present text[];
  v_gone tid[];
  v_due tid[];
  v_names text[];
  v_leases tid[];
begin
  perform require_read_committed('worker_watch');
  leases := 0;
  v_present := array(select s.name from worker_sessions() s);
  -- A time too far ahead is from before the clock stepped back.
  v_gone := array(
    select w.ctid from worker w
    where w.name <> all(v_present) and (w.look_at is null or w.look_at not between v_now and v_now + c_restart_grace)
    limit c_limit for update skip locked
  );
  if cardinality(v_gone) > 0 then
    perform set_config('synchronous_commit', 'off', true);
    -- Now that they are locked, look again: they may have registered since they were read.
    v_present := array(select s.name from worker_sessions() s);
    select array_agg(w.ctid), array_agg(w.name) into v_due, v_names
    from worker w
    where w.ctid = any(v_gone) and w.look_at is not null and w.name <> all(v_present);
    update worker w set gone_since = v_now, look_at = v_now + case
      when w.server_started_at = pg_postmaster_start_time() and w.server_pids && server_pids() then c_grace
      else c_restart_grace end
    where w.ctid = any(v_gone) and w.look_at is null and w.name <> all(v_present);
  end if;
  if v_due is not null then
    v_leases := array(
      select l.ctid from lease l where l.worker = any(v_names) and l.unlock_at > v_now limit c_limit
        for update skip locked
    );
    with ended as (
      update lease l set unlock_at = v_now where l.ctid = any(v_leases) returning l.worker
    )
    select count(*), array_agg(distinct e.worker) into leases, workers from ended e;
    delete from worker w
    where w.ctid = any(v_due) and leases = 0 and v_now not between w.gone_since and w.gone_since + c_look_for;
    update worker w set look_at = v_now + case when leases < c_limit then c_look_every else 0 end
    where w.ctid = any(v_due);
    if leases > 0 then
      perform sleepers_notify();
    end if;
  end if;
  -- About five calls per second by all workers together. If a worker is gone, whoever knows calls when its time has
  -- come.
  select case when leases = c_limit then 0
      else greatest(50, least(min(w.look_at) - v_now,
        greatest(500000, 200000 * count(*)) * (0.8 + 0.4 * random())) / 1000)
    end
  into wait_ms
  from worker w;
end
$$;
