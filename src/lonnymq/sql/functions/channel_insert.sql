-- channel_insert: insert the rows of channels that have none, with the name that their wakes carry. Part of
-- message_dequeue. A channel whose row another transaction is inserting is skipped; until that row exists, its turn
-- follows the queue's default policy.
-- Locks:  creation_lock of each.
-- Writes: channel (insert).
create or replace function channel_insert(p_channel_ids bigint[]) returns void
language plpgsql
as $$
declare
  v_channel_ids constant bigint[] := array(
    select c from unnest(p_channel_ids) c
    where (select true from channel where id = c) is null and creation_lock('channel', c)
  );
begin
  -- A new statement, because its snapshot shows what the previous holder of the lock has committed.
  insert into channel (id, name)
  select distinct on (w.channel_id) w.channel_id, w.channel_name
  from wake w
  where w.channel_id = any(v_channel_ids) and w.channel_name is not null
    and (select true from channel c where c.id = w.channel_id) is null
  order by w.channel_id, w.id
  on conflict do nothing;
end
$$;
