-- history_forget: forget a reader of history that will not return; what it has not read may be dropped.
-- Returns whether there was such a reader.
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
