-- channel_busiest: the channels with the most messages, waiting and leased, as channel_status shows them. It looks for
-- the next message of these channels only, so it stays cheap with very many channels.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_busiest(p_limit integer default 20) returns setof channel_status
language plpgsql stable security definer
set search_path from current
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
begin
  perform require_batch(p_limit);
  return query
  with busy as materialized (
    select coalesce(max(c.name), max(f.name)) as name, sum(f.waiting) + sum(f.leased) as messages
    from (
      select t.channel_id, null as name, t.waiting, 0 as leased from turn t
      union all
      select w.channel_id, w.channel_name, w.waiting, 0 from wake w
      union all
      select l.channel_id, null, 0, 1 from lease l
      union all
      select c.id, c.name, 0, 0 from channel c
    ) f
    left join channel c on c.id = f.channel_id
    group by f.channel_id
    order by 2 desc, 1
    limit p_limit
  )
  select v.* from channel_status v
  join busy b on b.name = v.channel
  where v.channel = any(array(select b.name from busy b))
  order by b.messages desc, v.channel;
end
$$;
