-- from_epoch: the instant of a number of milliseconds since 1970, the inverse of to_epoch. A number too small or too
-- large for a timestamp becomes the earliest or the latest instant that a dequeue_at may have.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function from_epoch(p_ms bigint) returns timestamptz
language sql immutable strict parallel safe
set search_path from current
as $$
  select timestamptz '1970-01-01 00:00:00+00'
    + least(greatest(p_ms, -210000000000000), 9000000000000000) / 1000 * interval '1 second'
    + least(greatest(p_ms, -210000000000000), 9000000000000000) % 1000 * interval '1 millisecond'
$$;
