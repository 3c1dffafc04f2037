-- history_index: index a partition of history by channel, unless it is. Queues with tenants need that to show each
-- tenant its own attempts only; other queues do without, because every attempt would pay for it.
-- Locks:  the partition in SHARE mode: do not call this for a partition that is being written.
-- Writes: an index.
create or replace function history_index(p_partition regclass) returns void
language plpgsql
set search_path from current
as $$
begin
  if not exists (
    select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
    where i.indrelid = p_partition and a.attname = 'channel'
  ) then
    execute format('create index on %s (channel, ended_at)', p_partition);
  end if;
end
$$;
