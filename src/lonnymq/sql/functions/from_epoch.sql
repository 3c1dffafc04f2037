-- from_epoch: the instant of a number of milliseconds since 1970, the inverse of to_epoch. A number too small for a
-- timestamp becomes the earliest instant (a dequeue_at may be any number).
-- Locks:  nothing.
-- Writes: nothing.
create or replace function from_epoch(p_ms bigint) returns timestamptz
language sql immutable strict parallel safe
set search_path from current
as $$
  select timestamptz '1970-01-01 00:00:00+00' + greatest(p_ms, -210000000000000) / 1000 * interval '1 second'
    + greatest(p_ms, -210000000000000) % 1000 * interval '1 millisecond'
$$;
