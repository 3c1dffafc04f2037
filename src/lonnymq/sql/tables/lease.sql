-- lease: one attempt in progress. Inserted by dequeue; ended by complete, defer, bury, give_back or expiry.
-- The token is the fence: attempt numbers are issued again after a crash, tokens are not. Times are microseconds.
create table lease (
  message_id bigint primary key,
  channel_id bigint not null,
  token bigint not null,
  attempt integer not null,
  -- The channel had a cap: the end of this lease must be reported (wake.done). Others cost nothing to end.
  is_capped boolean not null,
  -- Its holder works several messages in one process: if the lease is lost, another message may be to blame.
  is_shared boolean not null,
  leased_at bigint not null,
  unlock_at bigint not null,
  worker text
) with (
  fillfactor = 80, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2147483647
);
create index lease_unlock_ix on lease (unlock_at);
