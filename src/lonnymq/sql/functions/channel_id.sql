-- channel_id: a channel's id, derived from its name, so that no call looks it up or waits for another one to assign it.
-- Declared stable although it never changes: a function can only be inlined if what it calls is not more volatile, and
-- a call that is not inlined takes five times as long.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_id(p_salt bytea, p_channel text) returns bigint
language sql stable parallel safe
as $$
  select ('x' || encode(substr(sha256(p_salt || convert_to(p_channel, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
$$;
