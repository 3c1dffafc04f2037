-- turn: a channel's place in the rotation. Only dequeue writes it, under a row lock that is taken with "skip locked"
-- and never waited for. Times are microseconds, except mark_at, late_at and late_to, which are dequeue_at values.
--
-- There is no unique index, because a uniqueness check visits every dead version of the row, and there are many while
-- an old snapshot is open. The index on (channel_id, version desc) finds the live version first instead.
--
-- The fillfactor stays at 100. Every update changes the indexes, so that free space on the page would not save index
-- entries (no update is HOT), and a page that is fuller than its fillfactor is pruned at every visit, for one dead
-- version each time.
create table turn (
  channel_id bigint not null,
  version bigint not null,
  -- When to look at the channel next. May be too early, must never be too late. Null: parked until a wake arrives.
  next_at bigint,
  last_at bigint not null default 0,
  -- Rate limit (GCRA): the theoretical arrival time of the next release.
  release_at bigint not null default 0,
  -- The mark: every message up to here has been released, except those in the late range.
  mark_at bigint not null default -9223372036854775808,
  mark_id bigint not null default 0,
  -- The late range: messages that arrived below the mark, after (late_at, late_id) up to (late_to, late_to_id).
  late_at bigint,
  late_id bigint,
  late_to bigint,
  late_to_id bigint,
  -- In any snapshot: in_flight = leases with is_capped + sum of unfolded wake.done,
  -- and waiting + sum of unfolded wake.waiting = messages - leases.
  in_flight bigint not null default 0,
  waiting bigint not null default 0,
  -- There may be leases that in_flight does not count, because the channel had no cap when they were taken.
  has_uncapped boolean not null default false,
  -- The highest wake folded so far: the next fold starts there.
  wake_id bigint not null default 0,
  -- Messages already served of a turn that is worth several and was interrupted by the end of a reply.
  taken integer not null default 0,
  -- The place among the channels that were idle, or are new, and have a message now (see turn_is_idle). Null once the
  -- channel has been served. A new channel has no next_at until then: it gets its place in the rotation with its first
  -- message.
  return_at bigint,
  -- How many messages were ever leased, and how long they had waited together, since each was created or due.
  released bigint not null default 0,
  waited_ms bigint not null default 0
) with (
  vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2147483647
);
create index turn_channel_ix on turn (channel_id, version desc);
create index turn_next_ix on turn (next_at) where next_at is not null;
create index turn_return_ix on turn (return_at) where return_at is not null;
-- Logical replication needs the whole row to identify it, because the table has no key.
alter table turn replica identity full;
