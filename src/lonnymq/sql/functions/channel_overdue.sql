-- channel_overdue: the channels that have waited longest for a worker, as channel_status shows them: ready_at says
-- since when. Paused channels and channels at their limits are not among them. Its cost does not depend on the size
-- of the queue.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_overdue(p_limit integer default 20) returns setof channel_status
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform require_batch(p_limit);
  return query select s.* from channel_show(array(
    select d.channel_id from channel_due(least(p_limit + 20, 10000)) d order by d.due_at limit p_limit
  )) s;
end
$$;
