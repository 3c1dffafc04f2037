-- to_epoch: an instant as whole milliseconds since 1970, rounded down, also before 1970.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function to_epoch(p_at timestamptz) returns bigint
language plpgsql immutable strict parallel safe
set search_path from current
as $$
begin
  if not isfinite(p_at) then
    -- Not reject(), because this function runs with the rights of its caller, who may not call it.
    raise exception using errcode = 'LQ001', message = format('at must be a finite timestamp, got %s', p_at);
  end if;
  return floor(extract(epoch from p_at) * 1000)::bigint;
end
$$;
