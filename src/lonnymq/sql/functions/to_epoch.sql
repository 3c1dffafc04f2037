-- to_epoch: an instant as whole milliseconds since 1970, rounded down, before 1970 too.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function to_epoch(p_at timestamptz) returns bigint
language plpgsql immutable strict parallel safe
set search_path from current
as $$
begin
  if not isfinite(p_at) then
    perform reject('at', p_at::text, 'a finite timestamp');
  end if;
  return floor(extract(epoch from p_at) * 1000)::bigint;
end
$$;
