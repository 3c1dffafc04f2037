-- tables: size, live and dead rows of the queue's tables by PostgreSQL's statistics, and when they were last vacuumed.
select c.relname::text as name, pg_total_relation_size(c.oid) as bytes, coalesce(s.n_live_tup, 0) as live_rows,
  coalesce(s.n_dead_tup, 0) as dead_rows, greatest(s.last_autovacuum, s.last_vacuum) as vacuumed_at
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
left join pg_stat_all_tables s on s.relid = c.oid
where n.nspname = current_setting('lonnymq.schema') and c.relkind = 'r'
order by bytes desc;
