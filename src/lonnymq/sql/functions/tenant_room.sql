-- tenant_room: how many messages a tenant may still create in a channel; null if its size is not limited. Raises and
-- locks as tenant_enter.
-- Locks:  as tenant_enter.
-- Writes: as tenant_enter.
create or replace function tenant_room(p_channel text) returns bigint
language plpgsql
as $$
begin
  perform tenant_enter(p_channel, null);
  return (
    -- greatest() passes over null.
    select case when p.max_size is not null then greatest(0, p.max_size - channel_waiting(p.channel_id)) end
    from (
      select i.channel_id, nullif(coalesce(c.max_size, s.max_size), -1) as max_size
      from setting s
      cross join lateral (select channel_id(s.salt, p_channel) as channel_id offset 0) i
      left join channel c on c.id = i.channel_id
      where s.is_only
    ) p
  );
end
$$;
