-- lease_index_is_cheap: whether to look at leases by their index and not to read the whole table: if the table has
-- more than p_pages pages, and few dead rows. While a transaction that stays open for long keeps vacuum from cleaning,
-- a scan of the index steps over an entry for each lease that has ended since, which takes ten times as long as reading
-- the table. When it has ended, the table stays as large as it was, but the index is clean again.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function lease_index_is_cheap(p_pages integer) returns boolean
language sql stable
as $$
  select p.pages > p_pages and pg_stat_get_dead_tuples('lease'::regclass) < 10 * p.pages
  from (select table_pages('lease') as pages) p
$$;
