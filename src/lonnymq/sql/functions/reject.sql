-- reject: raise the error for an invalid argument. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function reject(p_argument text, p_value text, p_expected text) returns void
language plpgsql
set search_path from current
as $$
begin
  raise exception using
    errcode = 'LQ001',
    message = format('%s must be %s, got %s', p_argument, p_expected, coalesce(left(p_value, 100), 'null')),
    hint = format('Pass a value for %s that is %s.', p_argument, p_expected);
end
$$;
