-- history_rebase: after a dump was restored: give rows whose transaction ids this server has not reached the id of this
-- transaction, so that readers find them. Readers keep their names, so that nothing is dropped before they have read
-- it, but lose their positions, which mean nothing here: each must start again from the beginning.
-- Returns how many rows were changed.
-- Locks:  history in SHARE ROW EXCLUSIVE mode: attempts that end meanwhile wait.
-- Writes: history, history_reader, history_floor (delete).
create or replace function history_rebase() returns bigint
language plpgsql security definer
set search_path from current
as $$
declare
  v_xid constant bigint := pg_current_xact_id()::text::bigint;
  v_rows bigint;
begin
  lock table history in share row exclusive mode;
  update history h set xid = v_xid where h.xid > v_xid;
  get diagnostics v_rows = row_count;
  update history_reader r set xid = 0, id = 0, done_xid = 0, done_id = 0;
  delete from history_floor;
  return v_rows;
end
$$;
