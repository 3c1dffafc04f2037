-- message_uuid_mask: what encrypts the id in a message's uuid (see message_uuid).
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_uuid_mask(p_salt bytea, p_tag bytea) returns bigint
language sql stable
as $$
  select ('x' || encode(substr(sha256('uuid mask' || p_salt || p_tag), 1, 8), 'hex'))::bit(64)::bigint
$$;
