-- table_rows: about how many rows the tables of the schema that the setting lonnymq.schema names have, and their
-- bytes. The rows of a partitioned table are those of its partitions.
select c.relname::text, sum(greatest(p.reltuples, 0))::bigint, sum(pg_total_relation_size(p.oid))::bigint
from pg_namespace n
join pg_class c on c.relnamespace = n.oid and c.relkind in ('r', 'p')
join lateral (
  select c.oid union all select i.inhrelid from pg_inherits i where i.inhparent = c.oid
) m(oid) on true
join pg_class p on p.oid = m.oid
where n.nspname = current_setting('lonnymq.schema')
group by c.relname;
