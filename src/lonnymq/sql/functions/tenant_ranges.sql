-- tenant_ranges: the calling tenant's channels as ranges of names, from low up to but not including high; or p_channel,
-- which the caller has checked. A single channel is a range, too, because names have no control characters.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_ranges(p_channel text default null) returns table (low text, high text)
language plpgsql stable
as $$
begin
  if p_channel is not null then
    return query select p_channel, p_channel || chr(1);
  else
    return query
    select t.name, case when t.is_prefix then tenant_prefix_end(t.name) else t.name || chr(1) end
    from tenant t where t.role = tenant_role();
  end if;
end
$$;
