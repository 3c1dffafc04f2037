-- vacuum_blockers: what prevents vacuum from removing dead rows in this database, and for how long: transactions that
-- have been open for over a minute, prepared transactions, and inactive replication slots. The age of a slot is
-- unknown.
select 'transaction' as kind, a.pid::text as name, coalesce(a.usename, '?')::text as owner,
  a.application_name as application,
  a.state, extract(epoch from clock_timestamp() - a.xact_start)::double precision as age_s,
  left(regexp_replace(a.query, '[[:space:]]+', ' ', 'g'), 200) as detail
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type <> 'autovacuum worker'
  and a.xact_start < clock_timestamp() - interval '1 minute'
union all
select 'prepared transaction', p.gid, p.owner::text, '', 'prepared', extract(epoch from clock_timestamp() - p.prepared),
  ''
from pg_prepared_xacts p
where p.database = current_database()
union all
select 'replication slot', s.slot_name::text, '', coalesce(s.plugin, s.slot_type)::text, 'inactive', null, ''
from pg_replication_slots s
where not s.active and (s.xmin is not null or s.database = current_database())
order by 6 desc nulls last;
