-- tenant_room: how many messages a tenant may still create in a channel; null if its size is not limited. Raises and
-- locks as tenant_enter.
-- Locks:  as tenant_enter.
-- Writes: as tenant_enter.
create or replace function tenant_room(p_channel text) returns bigint
language plpgsql
as $$
declare
  v_id bigint;
begin
  perform tenant_enter(p_channel, null);
  select channel_id(s.salt, p_channel) into v_id from setting s where s.is_only;
  -- greatest() passes over null.
  return (
    select greatest(0, c.max_size - channel_waiting(v_id)) from channel c where c.id = v_id and c.max_size is not null
  );
end
$$;
