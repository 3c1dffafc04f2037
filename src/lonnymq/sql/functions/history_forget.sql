-- history_forget: a reader of history will not come back; what it has not read may be dropped.
-- Returns whether there was one.
-- Locks:  the reader's row.
-- Writes: history_reader (delete).
create or replace function history_forget(p_reader text) returns boolean
language plpgsql security definer
set search_path from current
as $$
begin
  delete from history_reader r where r.name = p_reader;
  return found;
end
$$;
