-- from_epoch: the instant of a number of microseconds since 1970.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function from_epoch(p_us bigint) returns timestamptz
language sql immutable strict parallel safe
set search_path from current
as $$
  select timestamptz '1970-01-01 00:00:00+00' + make_interval(secs => floor(p_us / 1000000.0)::double precision)
    + make_interval(secs => ((p_us % 1000000 + 1000000) % 1000000) / 1000000.0)
$$;
