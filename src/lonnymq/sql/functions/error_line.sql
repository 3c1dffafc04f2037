-- error_line: the line of an error that names it, by which dead letters are grouped: the last one that is not empty,
-- at most 200 characters of it.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function error_line(p_error text) returns text
language sql immutable parallel safe
as $$
  select left(substring(rtrim(right(p_error, 10000), ' ' || chr(9) || chr(10) || chr(13))
    from '[^' || chr(10) || chr(13) || ']*$'), 200)
$$;
