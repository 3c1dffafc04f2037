-- history_done: record that a reader is done with everything up to (p_xid, p_id), so that it may be dropped.
-- Locks:  the reader's row.
-- Writes: history_reader.
create or replace function history_done(p_reader text, p_xid bigint, p_id bigint) returns void
language sql security definer
set search_path from current
as $$
  update history_reader r set done_xid = p_xid, done_id = p_id, followed_at = now()
  where r.name = p_reader and (r.done_xid, r.done_id) < (p_xid, p_id)
$$;
