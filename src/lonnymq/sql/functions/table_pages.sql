-- table_pages: how many pages a table has, without the contents that it stores elsewhere.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function table_pages(p_table regclass) returns bigint
language sql stable
as $$
  select pg_relation_size(p_table) / current_setting('block_size')::bigint
$$;
