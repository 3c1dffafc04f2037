-- worker: a process that holds leases, and the session that stands for it: if the session is gone, so is the process,
-- and its leases end early. Rows change only when workers start, reconnect, stop or die. Times are microseconds.
create table worker (
  -- What its leases name as their worker. It ends with the fingerprint of a secret that only the worker knows.
  name text primary key,
  -- The session: its process in the server, and an advisory lock that it holds.
  pid integer not null,
  lock_id bigint not null,
  registered_at bigint not null,
  -- The server's own processes at that time. If none is left, the server has been restarted, and all sessions have
  -- ended.
  server_started_at timestamptz not null,
  server_pids integer[] not null,
  -- Since when the session has been missing; null: it exists, as far as anybody has noticed.
  gone_since bigint,
  -- When to look for leases to end; null as long as gone_since is.
  look_at bigint
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
  autovacuum_analyze_threshold = 2147483647);
