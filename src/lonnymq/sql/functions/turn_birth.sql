-- turn_birth: give those of these channels that have none a turn, and a channel row. Part of message_dequeue.
-- Returns the new turns. Channels that somebody else is making or deleting just now are left for the next call.
-- Locks:  channel_lock of each.
-- Writes: channel, turn (insert).
create or replace function turn_birth(p_channel_ids bigint[]) returns tid[]
language plpgsql
as $$
declare
  v_channel_ids bigint[] := array(
    select c from unnest(p_channel_ids) c where (select true from turn t where t.channel_id = c limit 1) is null
  );
  v_turns tid[];
begin
  if v_channel_ids = '{}' then
    return null;
  end if;
  v_channel_ids := array(select c from unnest(v_channel_ids) c where channel_lock(c));
  -- In a new statement, which sees what the last holder of the lock has committed.
  insert into channel (id, name)
  select distinct on (w.channel_id) w.channel_id, w.channel_name
  from wake w
  where w.channel_id = any(v_channel_ids) and w.channel_name is not null
  order by w.channel_id, w.id
  on conflict do nothing;
  with born as (
    insert into turn (channel_id, version)
    select c.id, 1
    from channel c
    where c.id = any(v_channel_ids) and (select true from turn t where t.channel_id = c.id limit 1) is null
    returning ctid
  )
  select array_agg(b.ctid) into v_turns from born b;
  return v_turns;
end
$$;
