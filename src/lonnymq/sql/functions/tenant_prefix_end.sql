-- tenant_prefix_end: the first name after all names that begin with a prefix. A prefix ends with a punctuation
-- character of ASCII (see queue_grant), and the next character exists in every encoding.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_prefix_end(p_prefix text) returns text
language sql stable
as $$
  select left(p_prefix, -1) || chr(ascii(right(p_prefix, 1)) + 1)
$$;
