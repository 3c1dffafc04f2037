-- history_blocker: the oldest transaction on this server that has written: no reader of history may read beyond it.
-- Returns its session's pid, or the gid of a prepared transaction; whose it is, and since when it is open. Returns
-- nothing if no other transaction has written. since is null if the queue's owner may not see it (that needs
-- pg_read_all_stats).
-- Locks:  nothing.
-- Writes: nothing.
create or replace function history_blocker()
returns table (xid bigint, pid integer, gid text, database text, role text, application text, since timestamptz)
language sql stable security definer
set search_path from current
as $$
  -- By locks, which every role may see: a transaction that writes holds a lock on its own transaction id.
  select o.xid::text::bigint, l.pid, p.gid, coalesce(a.datname, p.database)::text, coalesce(a.usename, p.owner)::text,
    a.application_name, coalesce(a.xact_start, p.prepared)
  from (select pg_snapshot_xmin(pg_current_snapshot()) as xid) o
  join pg_locks l on l.locktype = 'transactionid' and l.mode = 'ExclusiveLock' and l.granted
    and l.transactionid = o.xid::xid
  left join pg_stat_activity a on a.pid = l.pid
  left join pg_prepared_xacts p on l.pid is null and p.transaction = l.transactionid
  where l.pid is distinct from pg_backend_pid()
$$;
