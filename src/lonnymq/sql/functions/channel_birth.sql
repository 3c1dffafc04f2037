-- channel_birth: make the rows of channels that have none, named by whoever woke them. Part of message_dequeue.
-- A channel that somebody else is making just now is left to them; until it is there, its turn goes by the defaults.
-- Locks:  creation_lock of each.
-- Writes: channel (insert).
create or replace function channel_birth(p_channel_ids bigint[]) returns void
language plpgsql
as $$
declare
  v_channel_ids constant bigint[] := array(
    select c from unnest(p_channel_ids) c where (select true from channel where id = c) is null and creation_lock('channel', c)
  );
begin
  -- In a new statement, which sees what the last holder of the lock has committed.
  insert into channel (id, name)
  select distinct on (w.channel_id) w.channel_id, w.channel_name
  from wake w
  where w.channel_id = any(v_channel_ids) and w.channel_name is not null
    and (select true from channel c where c.id = w.channel_id) is null
  order by w.channel_id, w.id
  on conflict do nothing;
end
$$;
