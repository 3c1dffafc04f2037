-- channel_keep_name: before message_dequeue deletes the wakes of channels that have no row, preserve the channels'
-- names: insert the rows. If another transaction is inserting a row, which it may roll back, preserve the name in a new
-- wake of lane 2. Part of message_dequeue.
-- Locks:  creation_lock of each.
-- Writes: channel, wake (insert).
create or replace function channel_keep_name(p_channel_ids bigint[]) returns void
language plpgsql
as $$
begin
  perform channel_insert(p_channel_ids);
  insert into wake (lane, channel_id, channel_name)
  select distinct on (w.channel_id) 2, w.channel_id, w.channel_name
  from wake w
  where w.channel_id = any(p_channel_ids) and w.channel_name is not null
    and (select true from channel c where c.id = w.channel_id) is null
  order by w.channel_id, w.id;
end
$$;
