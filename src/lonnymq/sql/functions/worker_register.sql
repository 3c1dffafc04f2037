-- worker_register: make this session stand for a worker, which may have lost the session that stood for it. While the
-- session exists, the worker's leases end as they were granted. If it is gone and the worker does not register again in
-- time, they end early (see worker_watch).
-- p_secret: see require_worker. p_pid: the session's process, as the client was told when it connected.
-- Returns 'registered'; 'pooled' if this is another process, so that a pooler must be in between, and nothing was
-- registered; 'busy' if another transaction has the worker's row locked, or if too many workers that are gone are not
-- forgotten yet (ask again).
-- The server will notice within 20 seconds that the worker's host is gone, unless the role or the client has set how.
-- Locks:  an advisory lock, until the session ends; the worker's row, without waiting.
-- Writes: worker.
create or replace function worker_register(p_worker text, p_secret text, p_pid integer) returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_now constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_lock_id constant bigint := hashtextextended(gen_random_uuid()::text, 0);
  -- More than any fleet has. A session that gives up its lock again and again could register any number.
  c_max_rows constant integer := 10000;
  c_max_rows_of_session constant integer := 10;
  v_registered text;
  v_row worker;
  v_rows bigint;
  v_rows_of_session bigint;
begin
  perform require_worker(p_worker, p_secret);
  perform require_read_committed('worker_register');
  if p_pid is distinct from pg_backend_pid() then
    return 'pooled';
  end if;
  v_registered := (select s.name from worker_sessions() s where s.pid = p_pid limit 1);
  if v_registered = p_worker then
    return 'registered';
  elsif v_registered is not null then
    perform reject('worker', p_worker, format('%s, for which this session stands', v_registered));
  end if;
  -- Whatever a crash of the server takes with it, it also takes the session.
  perform set_config('synchronous_commit', 'off', true);
  perform set_config(s.name, s.value, false)
  from (values ('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '20000')) s(name, value)
  join pg_settings p on p.name = s.name and p.source in ('default', 'configuration file');

  perform from worker w where w.name = p_worker for update skip locked;
  if not found and exists (select from worker w where w.name = p_worker) then
    return 'busy';
  elsif not found then
    select count(*), count(*) filter (where w.pid = p_pid) into v_rows, v_rows_of_session from worker w;
    if v_rows >= c_max_rows or v_rows_of_session >= c_max_rows_of_session then
      perform worker_watch();
      return 'busy';
    end if;
  end if;
  if not pg_try_advisory_lock(v_lock_id) then
    return 'busy';  -- a program uses the same number for a lock of its own; the next one will be another
  end if;
  v_row := (p_worker, p_pid, v_lock_id, v_now, pg_postmaster_start_time(), server_pids(), null, null);
  insert into worker select v_row.*
  on conflict (name) do update set pid = v_row.pid, lock_id = v_row.lock_id, registered_at = v_row.registered_at,
    server_started_at = v_row.server_started_at, server_pids = v_row.server_pids, gone_since = null, look_at = null;
  return 'registered';
end
$$;
