-- turn: a channel's place in the rotation. Written by dequeue alone, under the row's lock, which is always skipped
-- and never waited for. Times are microseconds, except mark_at, late_at and late_to, which are dequeue_at values.
--
-- There is no unique index: a uniqueness check visits every dead version of the row, and under a long-open snapshot
-- there are many. (channel_id, version desc) finds the live one first instead.
--
-- Pages are filled: every update changes both indexes, so that room on its page would save nothing, and a page with a
-- fillfactor is pruned at each visit once it is fuller than that, for one dead version each time.
create table turn (
  channel_id bigint not null,
  version bigint not null,
  -- When to look at the channel next: may be early, must never be late. Null: parked until a wake comes.
  next_at bigint,
  last_at bigint not null default 0,
  -- Rate limit: the theoretical arrival time of the next release.
  release_at bigint not null default 0,
  -- Every message up to the mark has been handed out, except those in the late range.
  mark_at bigint not null default -9223372036854775808,
  mark_id bigint not null default 0,
  late_at bigint,
  late_id bigint,
  late_to bigint,
  late_to_id bigint,
  -- In any one snapshot: in_flight = leases that count (is_capped) + unfolded wake.done,
  -- and waiting + unfolded wake.waiting = messages - leases.
  in_flight bigint not null default 0,
  waiting bigint not null default 0,
  -- Leases may exist that do not count, because the channel had no cap when they were taken.
  has_uncapped boolean not null default false,
  -- Highest wake folded so far: where the next fold starts.
  wake_id bigint not null default 0,
  -- What it has had of a turn that is worth several messages (its weight) and was cut by the end of a reply.
  taken integer not null default 0
) with (
  vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2147483647
);
create index turn_channel_ix on turn (channel_id, version desc);
create index turn_next_ix on turn (next_at) where next_at is not null;
-- Without a key, updates of a published table need the whole row.
alter table turn replica identity full;
