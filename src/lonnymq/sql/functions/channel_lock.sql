-- channel_lock: try to become the one who makes or deletes a channel's row ('channel') or its turn ('turn'), until the
-- transaction ends. Returns false at once if somebody else is.
-- Locks:  an advisory lock. Nobody can guess its key: a channel's id is derived from a secret.
-- Writes: nothing.
create or replace function channel_lock(p_channel_id bigint, p_row text default 'channel') returns boolean
language sql
set search_path from current
as $$
  select pg_try_advisory_xact_lock(hashtextextended(p_row || ' ' || 'turn'::regclass::oid, p_channel_id))
$$;
