-- message_bytes: what a message takes of a reply. Inlined.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_bytes(p_key text, p_content bytea, p_state bytea, p_headers jsonb) returns integer
language sql immutable
as $$
  select octet_length(p_content) + coalesce(octet_length(p_state), 0) + coalesce(octet_length(p_key), 0)
    + coalesce(octet_length(p_headers::text), 0)
$$;
