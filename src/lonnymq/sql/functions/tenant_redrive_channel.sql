-- tenant_redrive_channel: dead_redrive_channel for a tenant, in its channels only, up to the channel's max_size.
-- Returns how many were redriven. Call it until it returns 0.
-- Locks:  as dead_redrive and tenant_enter.
-- Writes: as dead_redrive and tenant_enter.
create or replace function tenant_redrive_channel(p_channel text, p_limit integer default 10000) returns bigint
language plpgsql security definer
set search_path from current
as $$
declare
  v_limit integer;
begin
  perform require_batch(p_limit);
  v_limit := least(p_limit, tenant_room(p_channel));
  return case when v_limit = 0 then 0 else dead_redrive_channel(p_channel collate "default", v_limit) end;
end
$$;
