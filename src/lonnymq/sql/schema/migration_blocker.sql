-- migration_blocker: the oldest open transaction of another session that has locked an object of the schema that the
-- setting lonnymq.schema names: its pid, role, application and age in seconds.
select a.pid, a.usename::text, a.application_name, extract(epoch from clock_timestamp() - a.xact_start)::float8
from pg_namespace n
join pg_class c on c.relnamespace = n.oid
join pg_locks l on l.locktype = 'relation' and l.relation = c.oid and l.granted
join pg_database d on d.oid = l.database and d.datname = current_database()
join pg_stat_activity a on a.pid = l.pid and a.pid <> pg_backend_pid()
where n.nspname = current_setting('lonnymq.schema')
order by a.xact_start
limit 1;
