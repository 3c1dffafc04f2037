-- 0001_create_queue: the tables of version 1. Frozen from tables/ by tools/freeze.py.

-- setting: the settings of the queue, in one row.
create table setting (
  is_only boolean primary key default true check (is_only),
  -- Makes channel ids and the notification channel unguessable. Only the owner may read it.
  salt bytea not null,
  history text not null default 'off' check (history in ('off', 'metadata', 'full')),
  max_content_bytes bigint not null default 67108864 check (max_content_bytes between 1 and 67108864)
);

-- migration: the migrations that were applied to this schema.
-- breaks_below: a client whose newest known version is below this must not use the schema.
create table migration (
  version integer primary key,
  name text not null,
  breaks_below integer not null default 0,
  applied_at timestamptz not null default now()
);

-- channel: a tenant's name and policy. Written by channel_set and, on first use, by dequeue. Read by all calls.
-- The id is derived from the name (see channel_id), so that producers need not look it up and never wait for one another.
create table channel (
  id bigint primary key,
  name text not null,
  created_at timestamptz not null default now(),
  -- policy columns: written by tools/policy.py from model/policy.py. They are last because later ones are added last.
  max_concurrency integer check (max_concurrency >= 1),
  release_interval_ms bigint check (release_interval_ms between 1 and 86400000),
  release_burst integer not null default 1 check (release_burst between 1 and 10000),
  weight integer not null default 1 check (weight between 1 and 1000),
  max_size bigint check (max_size >= 0),
  max_attempts integer check (max_attempts >= 1),
  is_paused boolean not null default false
  -- end of policy columns
) with (fillfactor = 90);
create index channel_name_ix on channel (name);

-- turn: a channel's place in the rotation. Only dequeue writes it, under a row lock that is taken with "skip locked" and
-- never waited for. Times are microseconds, except mark_at, late_at and late_to, which are dequeue_at values.
--
-- There is no unique index, because a uniqueness check visits every dead version of the row, and there are many while an
-- old snapshot is open. The index on (channel_id, version desc) finds the live version first instead.
--
-- The fillfactor stays at 100. Every update changes both indexes, so that free space on the page would not save index
-- entries (no update is HOT), and a page that is fuller than its fillfactor is pruned at every visit, for one dead version
-- each time.
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
  -- Messages already served of a turn that is worth several (its weight) and was interrupted by the end of a reply.
  taken integer not null default 0
) with (
  vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2147483647
);
create index turn_channel_ix on turn (channel_id, version desc);
create index turn_next_ix on turn (next_at) where next_at is not null;
-- Logical replication needs the whole row to identify it, because the table has no key.
alter table turn replica identity full;

-- creation_lock: rows to lock on behalf of rows that do not exist yet, see the function creation_lock. Advisory locks would
-- avoid collisions, but every role that may connect could take them and so stop the queue. With this many rows, a
-- transaction that stays open after it has created a channel's turn delays one in 8,192 of the other new channels, and one
-- that has called channel_set for a new channel makes channel_set answer 'busy' for one in 4,096 of the others.
create table creation_lock (
  id bigint primary key
) with (fillfactor = 100);
insert into creation_lock (id) select generate_series(0, 16383);

-- message: a message that waits or is leased. Inserted once and deleted once; updated rarely, mostly by a defer.
-- dequeue_at is a time in milliseconds and also the priority: smaller values, which may be negative, are released first.
create table message (
  id bigint generated by default as identity primary key,
  channel_id bigint not null,
  -- Only if the table channel cannot tell the name: on first use of a channel, or if two names share an id.
  channel_name text,
  dequeue_at bigint not null,
  created_at bigint not null,
  attempts integer not null default 0,
  max_attempts integer,
  -- How often an attempt was lost together with its worker (see lease_expire). 0: never since an attempt last ended in
  -- order; 1 or 2: that often while the process had other messages too (from 2 on, workers run it alone); 3: also while it
  -- ran alone. At this position in the row it costs two bytes and no padding.
  suspicion smallint not null default 0,
  key text,
  content bytea not null,
  state bytea,
  error text
) with (
  vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2147483647
);
-- The expression id + 0 keeps the planner from using this index for a search by id. While it believes that the table is
-- empty, it estimates a scan of this whole index as cheap as one probe of the primary key, and keeps that plan.
create index message_order_ix on message (channel_id, dequeue_at, (id + 0));
create unique index message_key_ix on message (channel_id, key) where key is not null;

-- lease: one attempt in progress. Inserted by dequeue; deleted by complete, defer, bury, give back or expiry.
-- The token is the fence: after a crash an attempt number can be issued again, a token cannot. Times are microseconds.
create table lease (
  message_id bigint primary key,
  channel_id bigint not null,
  token bigint not null,
  attempt integer not null,
  -- The channel had a cap when the lease was taken, so its end must be reported (wake.done). Other ends are free.
  is_capped boolean not null,
  -- The holder works several messages in one process: if the lease is lost, another message may be to blame.
  is_shared boolean not null,
  leased_at bigint not null,
  unlock_at bigint not null,
  worker text
) with (
  fillfactor = 80, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2147483647
);
create index lease_unlock_ix on lease (unlock_at);

-- wake: "look at this channel". Short-lived and never updated. Every writer inserts wakes; only the dequeue that holds the
-- lock of the channel's turn deletes them, after it has read them.
-- lane 0: look soon; 1: a bulk load, which does not go ahead of others; 2: nothing new, fold it when the turn is due.
create table wake (
  id bigint generated always as identity,
  lane smallint not null default 0,
  channel_id bigint not null,
  -- Only creators know it. Dequeue learns the name of a new channel from here.
  channel_name text,
  -- The messages that it announces lie between (at, message_id) and (to_at, to_id); null if it announces none.
  at bigint,
  message_id bigint,
  to_at bigint,
  to_id bigint,
  -- How many leases with is_capped have ended.
  done integer not null default 0,
  -- By how much messages - leases has changed.
  waiting integer not null default 0
) with (
  vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2147483647
);
create unique index wake_lane_ix on wake (lane, id);
create index wake_channel_ix on wake (channel_id, id);
alter table wake replica identity using index wake_lane_ix;

-- dead: a dead letter: a buried message with its last error, until it is redriven or purged.
create table dead (
  message_id bigint primary key,
  channel text not null,
  dequeue_at bigint not null,
  created_at bigint not null,
  buried_at bigint not null,
  attempts integer not null,
  max_attempts integer,
  key text,
  content bytea not null,
  state bytea,
  error text
);
create index dead_channel_ix on dead (channel, message_id);

-- history: every finished attempt. Append-only, with one partition per day (UTC) of the attempt's end.
-- xid is the transaction that wrote the row. Readers that follow history read in the order of (xid, id), because rows are
-- not committed in the order of their ids.
create sequence history_id_seq as bigint;
create table history (
  id bigint not null default nextval('history_id_seq'),
  xid bigint not null default pg_current_xact_id()::text::bigint,
  message_id bigint not null,
  channel_id bigint not null,
  channel text,
  outcome text not null,
  attempt integer not null,
  created_at bigint not null,
  dequeue_at bigint not null,
  leased_at bigint,
  ended_at bigint not null,
  worker text,
  error text,
  content_bytes integer,
  content bytea,
  state bytea
) partition by range (ended_at);
create index history_xid_ix on history (xid, id);

-- history_overflow: takes the attempts of a day that has no partition. history_prepare moves them into one.
create table history_overflow (like history including defaults);
alter table history_overflow replica identity full;

-- history_reader: a reader of history and its position. (xid, id) is the end of the newest batch that was handed out, which
-- is on disk before the reader is told. The reader is done with everything up to (done_xid, done_id).
create table history_reader (
  name text primary key,
  xid bigint not null,
  id bigint not null,
  done_xid bigint not null,
  done_id bigint not null,
  followed_at timestamptz not null default now()
);

-- history_floor: rows up to this position may have been dropped. Without a row, nothing has been dropped.
create table history_floor (
  is_only boolean primary key default true check (is_only),
  xid bigint not null,
  id bigint not null
);

-- stage: a bulk load before it is published. A row holds messages of one channel, in order. The table is unlogged: after a
-- crash it is empty, which message_publish reports because it checks the counts.
--
-- Loads and streams belong to the role that stages and publishes them, so two roles can use the same name independently.
-- queue_grant lets producers insert only the columns from publication to max_attempts; the others keep their defaults.
create unlogged table stage (
  -- The same as caller_role(), which a producer that inserts here may not call.
  role text not null default coalesce(nullif(current_setting('role'), 'none'), session_user),
  publication text not null,
  part uuid not null,
  ordinal bigint not null,
  channel text not null,
  contents bytea[] not null,
  -- Each optional array is null or as long as contents; its elements may be null.
  dequeue_ats bigint[],
  delays_ms bigint[],
  keys text[],
  max_attempts integer[],
  staged_at timestamptz not null default now(),
  constraint stage_contents_are_a_list_without_null check (
    coalesce(array_ndims(contents), 0) = 1 and array_position(contents, null) is null
  ),
  constraint stage_arrays_are_as_long_as_contents check (
    cardinality(dequeue_ats) = cardinality(contents) and cardinality(delays_ms) = cardinality(contents)
    and cardinality(keys) = cardinality(contents) and cardinality(max_attempts) = cardinality(contents)
  )
) with (autovacuum_analyze_threshold = 2147483647);
-- Compression does not pay, because each row is read only once.
alter table stage
  alter column contents set storage external, alter column dequeue_ats set storage external,
  alter column delays_ms set storage external, alter column keys set storage external,
  alter column max_attempts set storage external;

-- publication: bulk loads that were published. The key (role, name) makes publishing idempotent.
create table publication (
  role text not null,
  name text not null,
  created bigint not null,
  duplicates bigint not null,
  published_at timestamptz not null default now(),
  primary key (role, name)
);

-- stream: bulk loads that arrive in numbered batches. The number of the last published batch makes publishing idempotent.
create table stream (
  role text not null,
  name text not null,
  last_batch bigint not null,
  created bigint not null,
  duplicates bigint not null,
  published_at timestamptz not null default now(),
  primary key (role, name)
);

-- sleeper: a worker that may be asleep and wants to be notified until then. Producers notify only while such a row exists.
-- Rows are inserted rarely, because one registration covers many sleeps. The index is descending so that a producer's probe
-- meets the newest registration first.
create table sleeper (
  worker text not null,
  until bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_analyze_threshold = 2147483647);
create index sleeper_until_ix on sleeper (until desc);
alter table sleeper replica identity full;

-- cron: a message to create again and again. A worker computes the ticks, because SQL cannot read cron expressions; mark_at
-- ensures that each tick is decided by exactly one worker (see cron_tick).
create table cron (
  name text primary key check (length(name) between 1 and 200 and name !~ '[[:cntrl:]]'),
  expression text not null check (length(expression) between 1 and 255),
  timezone text not null check (length(timezone) between 1 and 255),
  channel text not null,
  content bytea not null,
  max_attempts integer check (max_attempts >= 1),
  catch_up text not null check (catch_up in ('all', 'latest', 'none')),
  -- Declared in a program's code: only workers of that program tick it, so it stops when it is removed from the code.
  is_declared boolean not null,
  is_paused boolean not null default false,
  -- All ticks up to here are decided: created or skipped. Moves forward with every tick and every change of the schedule.
  mark_at timestamptz not null,
  -- The next tick; null until a worker has computed it.
  next_at timestamptz,
  last_at timestamptz,
  created_at timestamptz not null default now(),
  -- Every instant must fit the calendar of every client language: a single row outside of it would prevent workers from
  -- reading any cron.
  constraint cron_instants_check check (
    mark_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
    and next_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
    and last_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
    and created_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
  )
);
create index cron_next_ix on cron (next_at) where not is_paused;

-- claim: messages that were leased together, to be worked and completed together, by a consumer that may crash and
-- return. The row keeps the tokens of the leases, and the claim that the consumer completed before this one (prev).
create table claim (
  id uuid primary key default gen_random_uuid(),
  prev uuid,
  consumer text not null,
  message_ids bigint[] not null,
  tokens bigint[] not null,
  is_done boolean not null default false,
  lost integer not null default 0,
  claimed_at timestamptz not null default now(),
  kept_at timestamptz not null default now()
);

-- The values that the parts of message_dequeue pass to one another. No table stores them.

-- wake_total: the wakes of one channel, added up.
--   due_at                            when they make the channel due (milliseconds)
--   from_at, from_id, to_at, to_id    the range of the messages that they announce
--   is_late                           the range begins at or below the mark
--   look_requests                     how many ask for a look at the channel whether or not there are new messages
create type wake_total as (
  done bigint, waiting bigint, due_at bigint, from_at bigint, from_id bigint, to_at bigint, to_id bigint, is_late boolean,
  look_requests bigint, last_wake_id bigint, channel_name text, wakes tid[]
);

-- turn_state: a locked turn with its wakes added, and what the channel's policy allows now (see turn_assess).
--   due_at          since when the turn has been due; null if the channel is paused
--   taken_before    messages already served of a turn that the end of an earlier reply interrupted
--   tolerance_us    rate limit: how far ahead of evenly spaced releases a burst may run
--   cap_left        messages that the cap still allows; null without a cap
--   allowed         messages that the cap and the rate limit allow now
--   is_new_channel  the channel has no row in the table channel yet
create type turn_state as (
  tid tid, channel_id bigint, due_at bigint, last_at bigint, release_at bigint, mark_at bigint, mark_id bigint,
  late_at bigint, late_id bigint, late_to bigint, late_to_id bigint, in_flight bigint, waiting bigint,
  has_uncapped boolean, wake_id bigint, taken_before integer,
  name text, weight integer, max_attempts integer, interval_us bigint, tolerance_us bigint, cap_left bigint,
  allowed bigint, is_new_channel boolean, wakes tid[]
);

-- turn_allocation: a turn_state and what the turn is given. The fields of turn_state come first, so that a turn_state
-- followed by the other four values can be cast to it.
--   share        how many messages the turn may have; null or 0: none, and its messages are not read
--   served_at    the turn's next position in the rotation
--   taken_after  taken_before for the next call, if the end of this reply interrupts the turn
--   ordinal      the turn's index in the arrays of settlement
create type turn_allocation as (
  tid tid, channel_id bigint, due_at bigint, last_at bigint, release_at bigint, mark_at bigint, mark_id bigint,
  late_at bigint, late_id bigint, late_to bigint, late_to_id bigint, in_flight bigint, waiting bigint,
  has_uncapped boolean, wake_id bigint, taken_before integer,
  name text, weight integer, max_attempts integer, interval_us bigint, tolerance_us bigint, cap_left bigint,
  allowed bigint, is_new_channel boolean, wakes tid[],
  share integer, served_at bigint, taken_after integer, ordinal bigint
);

-- settlement: the messages to lease, in the order to work them, and the turns they belong to.
--   messages, ids, turn_ordinals  one element per message; turn_ordinals are indexes in the arrays per turn
--   channel_ids to are_capped     one element per turn
--   is_reply_full                 the reply can hold no more, although the caller asked for more
create type settlement as (
  settled_at bigint, messages tid[], ids bigint[], turn_ordinals integer[],
  channel_ids bigint[], names text[], max_attempts integer[], intervals_us bigint[], are_capped boolean[],
  name_bytes integer, is_reply_full boolean
);

-- lane_pass: how far a session has read the wakes of one lane. The pass continues at next_id and ends at stop_id, whatever
-- is added meanwhile. lowest_id is the lowest wake that it has found, null between two passes.
create type lane_pass as (next_id bigint, lowest_id bigint, stop_id bigint);

-- dequeue_hints: what a session remembers between two calls of message_dequeue.
create type dequeue_hints as (
  full_scan_at bigint,       -- when its last full scan began
  full_scan_us bigint,       -- how long that took
  min_next_at bigint,        -- no due turn has a lower next_at
  clock_check_at bigint,     -- when to look for timestamps from the future again (see clock_step_fix)
  clock_check_channel_id bigint, clock_check_dequeue_at bigint, clock_check_id bigint,  -- where that search continues
  soon lane_pass,            -- its pass over the wakes of lane 0
  bulk lane_pass,            -- its pass over the wakes of lane 1
  pid integer                -- the process of the session
);
