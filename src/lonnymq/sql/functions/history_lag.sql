-- history_lag: the readers of history, and how many seconds ago the oldest attempt ended that each is not done with;
-- 0 if it is done with all of them.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function history_lag(p_limit integer default 100) returns table (reader text, lag_s float8)
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform require_batch(p_limit);
  return query
  select r.name, coalesce(greatest(0, extract(epoch from clock_timestamp()) - h.ended_at / 1000.0), 0)::float8
  from history_reader r
  left join lateral (
    select h.ended_at from history h where (h.xid, h.id) > (r.done_xid, r.done_id) order by h.xid, h.id limit 1
  ) h on true
  order by r.name limit p_limit;
end
$$;
