-- tenant_find: the ids of live messages and dead letters by their uuids, with their channels, in the order given. Both
-- are null unless the calling tenant's grant covers the channel, as they are for a message that does not exist.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_find(p_uuids uuid[])
returns table (ordinal bigint, message_uuid uuid, message_id bigint, channel text)
language plpgsql stable
as $$
begin
  if p_uuids is null then
    perform reject('uuids', null, 'an array');
  elsif cardinality(p_uuids) > 10000 then
    perform reject('uuids', cardinality(p_uuids) || ' elements', 'at most 10000 elements');
  end if;
  for ordinal, message_uuid, message_id in
    select u.ordinal, u.uuid, message_of_uuid(u.uuid)
    from unnest(p_uuids) with ordinality u(uuid, ordinal) order by u.ordinal
  loop
    channel := coalesce(
      (select coalesce(m.channel_name, (select c.name from channel c where c.id = m.channel_id))
        from message m where m.id = message_id),
      (select d.channel from dead d where d.message_id = tenant_find.message_id));
    if (tenant_covers(channel)).role is null then
      message_id := null;
      channel := null;
    end if;
    return next;
  end loop;
end
$$;
