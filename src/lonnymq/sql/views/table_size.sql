-- table_size: the size of each table and index of this queue on disk, and its live and dead rows as last counted.
create or replace view table_size as
select r.relname::text as name, case r.relkind when 'i' then 'index' when 'I' then 'index' else 'table' end as kind,
  pg_relation_size(r.oid) as bytes, pg_size_pretty(pg_relation_size(r.oid)) as size,
  s.n_live_tup as live_rows, s.n_dead_tup as dead_rows, s.last_autovacuum
from pg_class r
left join pg_stat_all_tables s on s.relid = r.oid
where r.relnamespace = (select t.relnamespace from pg_class t where t.oid = 'turn'::regclass)
  and r.relkind in ('r', 'p', 'i', 'I');
