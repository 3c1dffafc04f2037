-- history_partition: each partition of history: its day, its bounds and its size.
create or replace view history_partition as
select c.relname::text as name, to_date(right(c.relname, 8), 'YYYYMMDD') as day,
  to_epoch(to_date(right(c.relname, 8), 'YYYYMMDD')::timestamp at time zone 'UTC') as from_ms,
  to_epoch((to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC') as until_ms,
  pg_total_relation_size(c.oid) as bytes, c.inhdetachpending as is_detaching
from (
  select c.oid, c.relname, i.inhdetachpending
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  where i.inhparent = 'history'::regclass
  -- Otherwise a query's condition on the day would be computed for all names in pg_class, which are no days.
  offset 0
) c;
