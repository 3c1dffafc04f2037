-- lease_token: a token that was never issued before: a random number combined with the current microsecond. Inlined.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function lease_token(p_now bigint) returns bigint
language sql volatile
as $$
  select (random() * 4611686018427387904)::bigint # p_now
$$;
