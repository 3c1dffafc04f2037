-- channel_id: a channel's id, derived from its name, so that nobody has to look it up or wait for whoever makes it.
-- Stable, though it never changes: what it calls is stable too, and only so can it be inlined (a call costs five times as much).
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_id(p_salt bytea, p_channel text) returns bigint
language sql stable parallel safe
as $$
  select ('x' || encode(substr(sha256(p_salt || convert_to(p_channel, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
$$;
