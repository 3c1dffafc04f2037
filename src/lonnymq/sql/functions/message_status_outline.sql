-- message_status_outline: message_status_of without what a reader may not see: the result.
-- Returns a row per id.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_status_outline(p_ids bigint[])
returns table (
  message_id bigint, status text, attempt integer, worker text, at bigint, error text, progress real, progress_note text
)
language sql stable security definer
set search_path from current
as $$
  select s.message_id, s.status, s.attempt, s.worker, s.at, s.error, s.progress, s.progress_note
  from message_status_of(p_ids) s
$$;
