-- tenant_dead_list: the calling tenant's dead letters with their content, oldest first, of one channel or all, p_limit
-- at a time (null: all) after the dead letter p_after. Not shown: what handlers have kept.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_dead_list(
  p_channel text default null, p_limit integer default 100, p_after uuid default null
)
returns table (
  message_uuid uuid, channel text, key text, attempts integer, error text, created_at bigint, buried_at bigint,
  content bytea
)
language plpgsql stable security definer
set search_path from current
as $$
declare
  v_after constant bigint := message_of_uuid(p_after);
begin
  if p_limit is not null then
    perform require_batch(p_limit);
  end if;
  if p_after is not null and v_after is null then
    perform reject('after', p_after::text, 'the uuid of a message of this queue');
  end if;
  -- Not in the query, which may answer without calling anything: if there is no dead letter at all.
  if p_channel is not null then
    perform tenant_require(p_channel);
  end if;
  return query
  select message_uuid(f.message_id), f.channel, f.key, f.attempts, f.error, f.created_at, f.buried_at, f.content
  from (
    select d.* from tenant_ranges(p_channel) r
    cross join lateral (
      -- Planned by itself, it reads the index by channel; otherwise it would read those of all channels, by id.
      select * from dead d where d.channel >= r.low collate "C" and d.channel < r.high collate "C" offset 0
    ) d
    where v_after is null or d.message_id > v_after
    order by d.message_id limit p_limit
  ) f;
end
$$;
