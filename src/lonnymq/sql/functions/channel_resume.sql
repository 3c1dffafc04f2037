-- channel_resume: end a pause.
-- Returns 'set' or 'busy', as channel_set.
-- Locks:  as channel_set.
-- Writes: as channel_set.
create or replace function channel_resume(p_channel text) returns text
language sql security definer
set search_path from current
as $$
  select channel_set(p_channel, '{"is_paused": false}')
$$;
