-- channel_pause: release no messages of a channel until channel_resume. Leases continue.
-- Returns 'set' or 'busy', as channel_set.
-- Locks:  as channel_set.
-- Writes: as channel_set.
create or replace function channel_pause(p_channel text) returns text
language sql security definer
set search_path from current
as $$
  select channel_set(p_channel, '{"is_paused": true}')
$$;
