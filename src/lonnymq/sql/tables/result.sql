-- result: what is kept of a message that has ended, for producers that asked for it (see result_keep_ms). A ring of
-- ten tables, one for each day on which results expire. Results are kept for at most seven days, so two tables of
-- the ring have only expired ones, which result_prune removes by TRUNCATE: no row is deleted, and no table is
-- created.
create table result (
  slot smallint not null,
  message_id bigint not null,
  outcome text not null,
  content bytea,
  ended_at bigint not null,
  expires_at bigint not null
) partition by list (slot);
create index result_message_ix on result (message_id);
create table result_0 partition of result for values in (0);
create table result_1 partition of result for values in (1);
create table result_2 partition of result for values in (2);
create table result_3 partition of result for values in (3);
create table result_4 partition of result for values in (4);
create table result_5 partition of result for values in (5);
create table result_6 partition of result for values in (6);
create table result_7 partition of result for values in (7);
create table result_8 partition of result for values in (8);
create table result_9 partition of result for values in (9);
