-- sleeper: a worker that may be asleep and wants to be notified until then. Producers notify only while such a row
-- exists. Rows are inserted rarely, because one registration covers many sleeps. The index is descending so that a
-- producer's probe meets the newest registration first.
create table sleeper (
  worker text not null,
  until bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
  autovacuum_analyze_threshold = 2147483647);
create index sleeper_until_ix on sleeper (until desc);
alter table sleeper replica identity full;
