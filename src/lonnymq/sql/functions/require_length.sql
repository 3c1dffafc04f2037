-- require_length: raise unless an optional array has one element per message. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_length(p_argument text, p_length integer, p_expected integer) returns void
language plpgsql
as $$
begin
  if p_length <> p_expected then
    perform reject(p_argument, p_length || ' elements', format('an array of %s elements, one per message', p_expected));
  end if;
end
$$;
