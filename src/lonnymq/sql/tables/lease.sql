-- lease: one attempt in progress. Inserted by dequeue; deleted by acknowledgements or expiry.
-- The token is the fence: after a crash an attempt number can be issued again, a token cannot. Times are microseconds.
create table lease (
  message_id bigint primary key,
  channel_id bigint not null,
  token bigint not null,
  attempt integer not null,
  -- The channel had a cap when the lease was taken, so its end must be reported (wake.done). Other ends are free.
  is_capped boolean not null,
  -- The holder processes several messages in one process: if the lease is lost, another message may be to blame.
  is_shared boolean not null,
  -- What the handler reported with a heartbeat, in ten-thousandths; -1: nothing. It fits where the next column would be
  -- aligned, so it takes no space. Nor does an empty note, but for a byte.
  progress smallint not null default -1,
  leased_at bigint not null,
  unlock_at bigint not null,
  worker text,
  progress_note text not null default ''
) with (
  fillfactor = 80, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2147483647
);
create index lease_unlock_ix on lease (unlock_at);
