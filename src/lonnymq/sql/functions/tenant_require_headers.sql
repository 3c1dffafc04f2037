-- tenant_require_headers: raise if headers of a tenant's message would reach beyond its channel: a notice of its burial
-- may be created in the same channel only, and a tenant cannot claim that a message is a notice. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_require_headers(p_channel text, p_headers jsonb) returns void
language plpgsql
as $$
begin
  if (p_headers ->> 'lonnymq-on-buried') collate "C" <> p_channel collate "C" then
    perform reject('header lonnymq-on-buried', quote_literal(p_headers ->> 'lonnymq-on-buried'),
      'the channel of the message');
  elsif p_headers ? 'lonnymq-buried-id' then
    perform reject('header lonnymq-buried-id', quote_literal(p_headers ->> 'lonnymq-buried-id'), 'absent');
  end if;
end
$$;
