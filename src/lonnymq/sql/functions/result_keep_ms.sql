-- result_keep_ms: how long the result of a message is kept, from its headers: the producer asks for it with the header
-- lonnymq-keep-result-ms, at most seven days. Null if it did not ask. PostgreSQL inlines this function.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function result_keep_ms(p_headers jsonb) returns bigint
language sql immutable
as $$
  select case when p_headers ->> 'lonnymq-keep-result-ms' ~ '^[0-9]{1,10}$'
    then least((p_headers ->> 'lonnymq-keep-result-ms')::bigint, 604800000) end
$$;
