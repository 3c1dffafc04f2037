-- require_results: raise unless there is a result, or null, for each message, of at most 1 MiB. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_results(p_results bytea[], p_count integer) returns void
language plpgsql immutable
as $$
declare
  v_size integer;
begin
  perform require_length('results', cardinality(p_results), p_count);
  select max(octet_length(r)) into v_size from unnest(p_results) r;
  if v_size > 1048576 then
    perform reject('results', format('one of %s bytes', v_size), 'at most 1048576 bytes each');
  end if;
end
$$;
