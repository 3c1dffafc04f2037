-- channel_busiest: the channels with the most messages, waiting and leased, as channel_status shows them. It finds
-- them by the messages on 64 pages spread evenly over the table, and among the channels that have waited longest. So
-- in a queue of more than 64 pages it may miss a channel that has fewer than about one in 64 of the messages. The
-- figures are exact, and its cost does not depend on the size of the queue.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_busiest(p_limit integer default 20) returns setof channel_status
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform require_batch(p_limit);
  return query
  select s.* from channel_show(array(
    select f.id
    from (
      (
        select m.channel_id as id, sum(m.messages) as messages from message_sample(64) m group by m.channel_id
        order by 2 desc, 1 limit p_limit + 10
      )
      union
      (select d.channel_id, d.demand from channel_due(20) d)
      union
      (select c.id, 0 from channel c order by c.name limit p_limit)
    ) f
    cross join lateral (
      select coalesce((select t.waiting from turn t where t.channel_id = f.id order by t.version desc limit 1), 0)
        + coalesce((select sum(w.waiting)
          from (select w.waiting from wake w where w.channel_id = f.id order by w.id limit 100) w), 0) as waiting
      offset 0
    ) w
    group by f.id
    order by greatest(max(w.waiting), max(f.messages)) desc, f.id
    limit p_limit
  )) s
  order by s.waiting + s.leased desc, s.channel;
end
$$;
