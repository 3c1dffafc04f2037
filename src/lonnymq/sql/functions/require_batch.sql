-- require_batch: raise unless a batch size is valid. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_batch(p_limit integer) returns void
language plpgsql immutable
as $$
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform reject('limit', p_limit::text, 'between 1 and 10000');
  end if;
end
$$;
