-- require_headers: raise unless the headers of a message are valid. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_headers(p_headers jsonb) returns void
language plpgsql immutable
as $$
declare
  v_error constant text := headers_error(p_headers);
begin
  if v_error is not null then
    raise exception using
      errcode = 'LQ001',
      message = v_error,
      hint = 'Pass a flat JSON object of strings of at most 8192 bytes, or null.';
  end if;
end
$$;
