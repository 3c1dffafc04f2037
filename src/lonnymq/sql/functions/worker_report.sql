-- worker_report: report what a worker's process is and does, for worker_status. Nothing else depends on it.
-- p_secret: see require_worker. p_tasks: the first 50 names. p_busy: how many of its slots have a message. p_held: how
-- many messages it holds; p_message_ids, p_channels and p_leased_ats (microseconds) describe those that it has held
-- longest, at most 10. p_has_session: it is registered (see worker_register).
-- Returns in how many milliseconds to report again, and whether somebody asked the process to drain (see worker_drain).
-- A report that finds its row locked, or no room among 10,000 processes, is dropped. A process that has not reported
-- for an hour is deleted when another one first reports.
-- Locks:  the worker's row; with a first report, old ones; skips locked ones.
-- Writes: worker_process.
create or replace function worker_report(
  p_worker text, p_secret text, p_host text, p_pid integer, p_version text, p_tasks text[], p_slots integer,
  p_uptime_ms bigint, p_has_session boolean, p_busy integer, p_held integer, p_message_ids bigint[], p_channels text[],
  p_leased_ats bigint[], p_is_draining boolean, out wait_ms bigint, out is_asked_to_drain boolean
)
language plpgsql security definer
set search_path from current
as $$
declare
  c_report_every_ms constant bigint := 5000;
  c_max_rows constant integer := 10000;
  c_silent_for constant bigint := 15000000;
  c_forget_after constant bigint := 3600000000;
  v_now constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_row tid;
  v_old tid[];
begin
  perform require_worker(p_worker, p_secret);
  perform require_report(p_host, p_pid, p_version, p_tasks, p_slots, p_uptime_ms, p_busy, p_held, p_message_ids,
    p_channels, p_leased_ats);
  perform require_read_committed('worker_report');
  perform set_config('synchronous_commit', 'off', true);
  wait_ms := c_report_every_ms * (0.8 + 0.4 * random());
  is_asked_to_drain := false;
  select p.ctid into v_row from worker_process p where p.name = p_worker for update skip locked;
  if found then
    update worker_process p set seen_at = v_now, has_session = p_has_session is true, busy = p_busy, held = p_held,
      message_ids = p_message_ids, channels = p_channels, leased_ats = p_leased_ats,
      is_draining = p_is_draining is true
    where p.ctid = v_row
    returning p.drain_at is not null into is_asked_to_drain;
    return;
  elsif exists (select from worker_process p where p.name = p_worker) then
    return;
  end if;

  -- A time ahead is from before the clock stepped back.
  v_old := array(
    select p.ctid from worker_process p where abs(v_now - p.seen_at) > c_forget_after limit 1000 for update skip locked
  );
  delete from worker_process p where p.ctid = any(v_old);
  if (select count(*) from worker_process) >= c_max_rows then
    v_old := array(
      select p.ctid from worker_process p where abs(v_now - p.seen_at) > c_silent_for limit 1000 for update skip locked
    );
    delete from worker_process p where p.ctid = any(v_old);
    if not found then
      return;
    end if;
  end if;
  insert into worker_process values (p_worker, p_host, p_pid, p_version, p_tasks, p_slots,
    v_now - p_uptime_ms * 1000, v_now, p_has_session is true, p_busy, p_held, p_message_ids, p_channels, p_leased_ats,
    p_is_draining is true, null)
  on conflict (name) do nothing;
end
$$;
