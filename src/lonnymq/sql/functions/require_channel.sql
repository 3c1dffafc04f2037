-- require_channel: raise unless a channel name is valid. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_channel(p_channel text) returns void
language plpgsql immutable
as $$
begin
  if p_channel is null or length(p_channel) not between 1 and 255 or p_channel ~ '[[:cntrl:]]' then
    perform reject('channel', quote_literal(p_channel), '1 to 255 characters without control characters');
  end if;
end
$$;
