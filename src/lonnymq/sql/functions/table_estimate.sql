-- table_estimate: about how many rows a table has. PostgreSQL counts them, about a second late. A crash of the server
-- loses what it has counted, but not what the last vacuum found.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function table_estimate(p_table regclass) returns bigint
language sql stable
as $$
  select greatest(0, case
    when coalesce(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid),
      pg_stat_get_last_analyze_time(c.oid), pg_stat_get_last_autoanalyze_time(c.oid)) is null
    then greatest(c.reltuples, 0)::bigint + pg_stat_get_tuples_inserted(c.oid) - pg_stat_get_tuples_deleted(c.oid)
    else pg_stat_get_live_tuples(c.oid)
  end)
  from pg_class c where c.oid = p_table
$$;
