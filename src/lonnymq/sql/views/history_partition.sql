-- history_partition: each partition of history: its day, its bounds and its size.
create or replace view history_partition as
select c.relname::text as name, to_date(right(c.relname, 8), 'YYYYMMDD') as day,
  to_epoch(to_date(right(c.relname, 8), 'YYYYMMDD')::timestamp at time zone 'UTC') as from_ms,
  to_epoch((to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC') as until_ms,
  pg_total_relation_size(c.oid) as bytes, i.inhdetachpending as is_detaching
from pg_inherits i
join pg_class c on c.oid = i.inhrelid
where i.inhparent = 'history'::regclass;
