-- history_rebase: after a dump was restored: make rows of transactions that this server has not had this transaction's,
-- so that readers come to them. Readers keep their names, so that nothing is dropped before they have read it, and lose
-- their positions, which mean nothing here: each must begin anew.
-- Returns how many rows were changed.
-- Locks:  history, share row exclusive: attempts that end meanwhile wait.
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
