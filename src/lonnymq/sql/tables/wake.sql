-- wake: "look at this channel". Append-only and short-lived: everybody inserts, only the dequeue that holds the
-- channel's turn deletes, in the very statement that read it.
-- lane 0: look soon; 1: a bulk load, not in front of others; 2: nothing new, fold it when the turn comes.
create table wake (
  id bigint generated always as identity,
  lane smallint not null default 0,
  channel_id bigint not null,
  -- Known to creators only; how dequeue learns the name of a channel on first use.
  channel_name text,
  -- No message that it speaks of comes before (at, message_id) or after (to_at, to_id); null if it speaks of none.
  at bigint,
  message_id bigint,
  to_at bigint,
  to_id bigint,
  -- Leases that ended, of those that count; change in messages less leases.
  done integer not null default 0,
  waiting integer not null default 0
) with (
  vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2147483647
);
create unique index wake_lane_ix on wake (lane, id);
create index wake_channel_ix on wake (channel_id, id);
alter table wake replica identity using index wake_lane_ix;
