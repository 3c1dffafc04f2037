-- channel_delete: delete a channel and its policy, if it has no messages, waiting or leased. Its dead letters stay.
-- Returns 'deleted', 'not_empty', 'unknown', or 'busy' (ask again). A message that is created meanwhile creates the
-- channel again.
-- Locks:  creation_lock, the channel and its turn; does not wait.
-- Writes: channel, turn, wake, tenant_channel (delete).
create or replace function channel_delete(p_channel text) returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_id bigint;
  v_turn tid;
begin
  perform require_channel(p_channel);
  perform require_read_committed('channel_delete');
  select channel_id(s.salt, p_channel) into v_id from setting s where s.is_only;
  if not exists (select from channel c where c.id = v_id and c.name = p_channel) then
    -- No dequeue may have created its row yet.
    return case when exists (select from message m where m.channel_id = v_id) then 'not_empty' else 'unknown' end;
  elsif not creation_lock('channel', v_id) or not creation_lock('turn', v_id) then
    return 'busy';
  end if;
  perform from channel c where c.id = v_id for update skip locked;
  if not found then
    return 'busy';
  end if;
  select t.ctid into v_turn from turn t where t.channel_id = v_id order by t.version desc limit 1;
  if v_turn is not null then
    select t.ctid into v_turn from turn t where t.ctid = v_turn for update skip locked;
    if v_turn is null then
      return 'busy';
    end if;
  end if;
  -- Under the turn's lock and in one snapshot: there is no message, and messages - leases is 0, so there is no lease
  -- either.
  with empty_channel as (
    select v_id as id
    where not exists (select from message m where m.channel_id = v_id)
      and channel_waiting(v_id) = 0
  ),
  wakes as (
    delete from wake w where w.channel_id = v_id and exists (select from empty_channel)
  ),
  turns as (
    delete from turn t using empty_channel e where t.ctid = v_turn
  )
  delete from channel c where c.id = v_id and exists (select from empty_channel);
  if not found then
    return 'not_empty';
  end if;
  -- Under a tenant's prefix, another channel may take its place.
  delete from tenant_channel u
  where u.ctid = any(array(
    select u.ctid from tenant_channel u where u.name = p_channel and not u.is_prefix for update skip locked
  ));
  return 'deleted';
end
$$;
