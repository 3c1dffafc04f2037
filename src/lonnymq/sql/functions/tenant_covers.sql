-- tenant_covers: the part of the calling tenant's grant that covers a channel; null if none does. Comparisons name
-- their collation, because otherwise they would use that of the caller's argument, which may ignore case.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_covers(p_channel text) returns tenant
language plpgsql stable
as $$
declare
  v_grant tenant;
begin
  select t.* into v_grant from tenant t
  where t.role = tenant_role() and t.name <= p_channel collate "C"
  order by t.name desc limit 1;
  if v_grant.name = p_channel collate "C" or v_grant.is_prefix and starts_with(p_channel collate "C", v_grant.name) then
    return v_grant;
  end if;
  return null;
end
$$;
