-- index_blocker: the oldest transaction for which the building of an index may wait: its pid, role, application and age
-- in seconds. It waits for all transactions in the database that are older than the index, whatever they use.
select a.pid, a.usename::text, a.application_name, extract(epoch from clock_timestamp() - a.xact_start)::float8
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.xact_start is not null
  and (a.backend_xid is not null or a.backend_xmin is not null)
order by a.xact_start
limit 1;
