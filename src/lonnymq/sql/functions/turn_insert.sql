-- turn_insert: insert a turn, and a channel row, for those of these channels that have woken and have no turn. Part of
-- message_dequeue.
-- Returns the new turns. It leaves to the next call a turn that another transaction is inserting or deleting, and all
-- beyond the first 128: until this transaction ends, other new channels that share a creation_lock with one of these
-- wait.
-- Locks:  creation_lock of each.
-- Writes: channel, turn (insert).
create or replace function turn_insert(p_channel_ids bigint[]) returns tid[]
language plpgsql
as $$
declare
  -- What another transaction holds is passed over before the limit applies, so that it hides nothing else.
  v_channel_ids bigint[] := array(
    select n.id
    from (
      select distinct c as id from unnest(p_channel_ids) c
      where (select true from turn t where t.channel_id = c limit 1) is null
      offset 0
    ) n
    where creation_lock('turn', n.id)
    limit 128
  );
  v_turns tid[];
begin
  if v_channel_ids = '{}' then
    return null;
  end if;
  -- A new statement, because its snapshot shows what the previous holder of the lock has committed.
  with inserted as (
    insert into turn (channel_id, version)
    select c, 1 from unnest(v_channel_ids) c
    where (select true from turn t where t.channel_id = c limit 1) is null
      -- Without a wake, the channel has been deleted meanwhile.
      and (select true from wake w where w.channel_id = c limit 1)
    returning ctid
  )
  select array_agg(i.ctid) into v_turns from inserted i;
  perform channel_insert(v_channel_ids);
  return v_turns;
end
$$;
