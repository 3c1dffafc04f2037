-- sleeper: "notify until then": a worker that may be asleep. Producers notify only while such a row exists.
-- Rows are inserted rarely (a registration outlasts many naps), so that the newest come first in the index.
create table sleeper (
  worker text not null,
  until bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_analyze_threshold = 2147483647);
create index sleeper_until_ix on sleeper (until desc);
alter table sleeper replica identity full;
