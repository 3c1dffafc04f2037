-- wake: "look at this channel". Short-lived and never updated. Every writer inserts wakes; only the dequeue that holds
-- the lock of the channel's turn deletes them, after it has read them.
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
