-- worker_sessions: the registered workers whose session exists. Every role may see advisory locks and could take one
-- with the same number, so the session must be the one that registered.
-- Reads:  worker, the locks of all sessions.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function worker_sessions() returns table (name text, pid integer)
language sql stable
as $$
  select w.name, w.pid
  from pg_locks l
  join worker w on w.pid = l.pid and w.lock_id = (l.classid::bigint << 32 | l.objid::bigint)
  where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
$$;
