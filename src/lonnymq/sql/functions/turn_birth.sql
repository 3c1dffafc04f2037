-- turn_birth: give those of these channels that woke and have none a turn, and a channel row. Part of message_dequeue.
-- Returns the new turns. A turn that somebody else is making or deleting just now is left for the next call, and so is
-- what is more than 128: until the transaction ends, others that share a lock with one of these have to wait.
-- Locks:  creation_lock of each.
-- Writes: channel, turn (insert).
create or replace function turn_birth(p_channel_ids bigint[]) returns tid[]
language plpgsql
as $$
declare
  v_channel_ids bigint[] := array(
    select distinct c from unnest(p_channel_ids) c where (select true from turn t where t.channel_id = c limit 1) is null
    limit 128
  );
  v_turns tid[];
begin
  if v_channel_ids = '{}' then
    return null;
  end if;
  v_channel_ids := array(select c from unnest(v_channel_ids) c where creation_lock('turn', c));
  -- In a new statement, which sees what the last holder of the lock has committed.
  with born as (
    insert into turn (channel_id, version)
    select c, 1 from unnest(v_channel_ids) c
    where (select true from turn t where t.channel_id = c limit 1) is null
      -- Unless the channel was deleted meanwhile.
      and (select true from wake w where w.channel_id = c limit 1)
    returning ctid
  )
  select array_agg(b.ctid) into v_turns from born b;
  perform channel_birth(v_channel_ids);
  return v_turns;
end
$$;
