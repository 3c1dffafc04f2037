-- worker_process: what a worker's process last reported about itself, for people who look. No call depends on it.
-- A report rewrites the row, within its page if there is room, because no index has a column that changes. Times are
-- microseconds.
create table worker_process (
  -- What its leases name as their worker.
  name text primary key,
  -- What a process reports once.
  host text not null,
  pid integer not null,
  version text not null,
  tasks text[] not null,
  slots integer not null,
  started_at bigint not null,
  -- What each report changes.
  seen_at bigint not null,
  -- It has a session that stands for it (see worker): if that is gone, so is the process.
  has_session boolean not null,
  busy integer not null,
  held integer not null,
  -- The messages that it has held longest.
  message_ids bigint[] not null,
  channels text[] not null,
  leased_ats bigint[] not null,
  is_draining boolean not null,
  -- When it was asked to drain.
  drain_at bigint
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
  autovacuum_analyze_threshold = 2147483647);
