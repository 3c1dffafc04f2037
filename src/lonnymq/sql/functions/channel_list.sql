-- channel_list: these channels, by their names, as channel_status shows them; without those that do not exist. Its
-- cost does not depend on the size of the queue.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_list(p_channels text[]) returns setof channel_status
language plpgsql stable security definer
set search_path from current
as $$
begin
  if p_channels is null or cardinality(p_channels) > 10000 then
    perform reject('channels', cardinality(p_channels)::text, 'an array of at most 10000 names');
  end if;
  return query select s.* from channel_show(array(
    select distinct channel_id(q.salt, c) from setting q cross join unnest(p_channels) c where q.is_only
  )) s
  where s.channel = any(p_channels) order by s.channel;
end
$$;
