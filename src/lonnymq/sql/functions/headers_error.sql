-- headers_error: what is wrong with the headers of a message; null if they are valid. They must be a flat JSON object
-- of strings, which takes at most 8192 bytes as jsonb prints it.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function headers_error(p_headers jsonb) returns text
language plpgsql immutable
as $$
declare
  v_name text;
begin
  if jsonb_typeof(p_headers) <> 'object' then
    return format('headers must be a JSON object of strings, got %s', left(p_headers::text, 100));
  elsif octet_length(p_headers::text) > 8192 then
    return format('headers must be at most 8192 bytes, got %s bytes', octet_length(p_headers::text));
  end if;
  select h.key into v_name from jsonb_each(p_headers) h
  where jsonb_typeof(h.value) <> 'string' or length(h.key) not between 1 and 255 or h.key ~ '[[:cntrl:]]'
  limit 1;
  return case
    when not found then case
      when length(p_headers ->> 'lonnymq-on-buried') not between 1 and 255
        or p_headers ->> 'lonnymq-on-buried' ~ '[[:cntrl:]]' then
        format('header lonnymq-on-buried must be a channel, 1 to 255 characters without control characters, got %L',
          left(p_headers ->> 'lonnymq-on-buried', 100))
    end
    when length(v_name) not between 1 and 255 or v_name ~ '[[:cntrl:]]' then
      format('headers must be named by 1 to 255 characters without control characters, got %L', left(v_name, 100))
    else
      format('headers must be strings, got %s for %L', left((p_headers -> v_name)::text, 100), left(v_name, 100))
  end;
end
$$;
