-- require_cron: raise unless the name of a cron is valid. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_cron(p_name text) returns void
language plpgsql immutable
as $$
begin
  -- Shorter than a key, because the key of a tick contains the name and the time.
  if p_name is null or length(p_name) not between 1 and 200 or p_name ~ '[[:cntrl:]]' then
    perform reject('name', quote_literal(p_name), '1 to 200 characters without control characters');
  end if;
end
$$;
