-- channel_keep: make the rows of channels that have none; where somebody else is making one, and may give up, keep at
-- least the name: in a wake that nobody needs to look at. Part of message_dequeue, before it deletes the wakes it read.
-- Locks:  creation_lock of each.
-- Writes: channel, wake (insert).
create or replace function channel_keep(p_channel_ids bigint[]) returns void
language plpgsql
as $$
begin
  perform channel_birth(p_channel_ids);
  insert into wake (lane, channel_id, channel_name)
  select distinct on (w.channel_id) 2, w.channel_id, w.channel_name
  from wake w
  where w.channel_id = any(p_channel_ids) and w.channel_name is not null
    and (select true from channel c where c.id = w.channel_id) is null
  order by w.channel_id, w.id;
end
$$;
