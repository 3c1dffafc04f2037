-- history_readers: the readers of history: how far each is done, how many rows it is not done with (counted to
-- p_count_to), and the horizon, the oldest open transaction, beyond which nobody may read.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function history_readers(p_count_to integer default 1000000)
returns table (reader text, done_xid bigint, done_id bigint, followed_at timestamptz, behind bigint, horizon bigint)
language sql stable security definer
set search_path from current
as $$
  select r.name, r.done_xid, r.done_id, r.followed_at, (
    select count(*) from (
      select from history h where (h.xid, h.id) > (r.done_xid, r.done_id) order by h.xid, h.id limit p_count_to
    ) s
  ), pg_snapshot_xmin(pg_current_snapshot())::text::bigint
  from history_reader r order by r.name
$$;
