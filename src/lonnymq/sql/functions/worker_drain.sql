-- worker_drain: ask worker processes to take no more messages, to finish those that they have, and to end. A process
-- learns of it by its next report.
-- p_worker: a process, or the beginning of its name up to a colon, such as a host; null: all that report now.
-- Returns a row per process that is meant: 'draining', or 'busy' if another transaction has its row locked (ask again).
-- Locks:  the rows of these processes, skipping locked ones.
-- Writes: worker_process.
create or replace function worker_drain(p_worker text) returns table (worker text, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_now constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_meant text[];
  v_rows tid[];
begin
  if length(p_worker) not between 1 and 255 then
    perform reject('worker', p_worker, '1 to 255 characters, or null for all');
  end if;
  perform require_read_committed('worker_drain');
  v_meant := array(
    select s.worker from worker_status s
    where p_worker is null or s.worker = p_worker or left(s.worker, length(p_worker) + 1) = p_worker || ':'
  );
  v_rows := array(select p.ctid from worker_process p where p.name = any(v_meant) for update skip locked);
  return query
  with asked as (
    update worker_process p set drain_at = coalesce(p.drain_at, v_now) where p.ctid = any(v_rows) returning p.name
  )
  select u, case when exists (select from asked a where a.name = u) then 'draining' else 'busy' end
  from unnest(v_meant) u
  order by u;
end
$$;
