-- channel_page: a page of the channels whose names begin with p_prefix, by the bytes of their names, as channel_status
-- shows them. p_after: the last name of the page before.
-- A channel that no dequeue has seen yet is found by its full name, or if it has one of the 1,000 oldest wakes of its
-- lane. The cost does not depend on the size of the queue.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_page(
  p_prefix text default '', p_after text default '', p_limit integer default 100
) returns setof channel_status
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform require_batch(p_limit);
  if p_prefix is null or p_after is null then
    perform reject(case when p_prefix is null then 'prefix' else 'after' end, null, 'a string');
  end if;
  return query
  select s.* from channel_show(array(
    select f.id
    from (
      (
        select c.id, c.name from channel c where c.name >= p_prefix and c.name > p_after
        order by c.name limit p_limit
      )
      union
      (
        select w.channel_id, w.channel_name collate "C"
        from (
          (select w.* from wake w where w.lane = 0 order by w.lane, w.id limit 1000)
          union all
          (select w.* from wake w where w.lane = 1 order by w.lane, w.id limit 1000)
        ) w
        where w.channel_name is not null
      )
      union
      (select channel_id(s.salt, p_prefix), p_prefix collate "C" from setting s where s.is_only)
    ) f
    where starts_with(f.name, p_prefix) and f.name > p_after
    order by f.name
    limit p_limit
  )) s;
end
$$;
