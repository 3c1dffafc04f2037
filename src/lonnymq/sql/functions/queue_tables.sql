-- queue_tables: the size of each table of this queue on disk, with its indexes, and its live and dead rows as
-- PostgreSQL has last counted them. The partitions of a table are added up.
-- Locks:  nothing, but waits for locks that exclude readers.
-- Writes: nothing.
create or replace function queue_tables() returns table (name text, bytes bigint, live_rows bigint, dead_rows bigint)
language sql stable security definer
set search_path from current
as $$
  select s.name, sum(s.bytes)::bigint, sum(s.live_rows)::bigint, sum(s.dead_rows)::bigint
  from (
    select
      -- A partition of history that an interrupted prune has detached is still history.
      case when c.relname ~ '^history_[0-9]{8}$' then 'history' else coalesce(r.relname, c.relname) end::text as name,
      coalesce(pg_total_relation_size(c.oid), 0) as bytes, pg_stat_get_live_tuples(c.oid) as live_rows,
      pg_stat_get_dead_tuples(c.oid) as dead_rows
    from pg_class c
    left join pg_class r on r.oid = pg_partition_root(c.oid)
    where c.relnamespace = (select t.relnamespace from pg_class t where t.oid = 'turn'::regclass)
      and c.relkind in ('r', 'p')
  ) s
  group by s.name
  order by s.name
$$;
