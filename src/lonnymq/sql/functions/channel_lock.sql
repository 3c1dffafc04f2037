-- channel_lock: try to become the one who makes or deletes a channel's rows, until the transaction ends.
-- Returns false at once if somebody else is.
-- Locks:  an advisory lock of the channel.
-- Writes: nothing.
create or replace function channel_lock(p_channel_id bigint) returns boolean
language sql
set search_path from current
as $$
  select pg_try_advisory_xact_lock(hashtextextended('lonnymq ' || 'turn'::regclass::oid, p_channel_id))
$$;
