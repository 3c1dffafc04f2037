-- channel_set: change a channel's policy, and create the channel if there is none. p_policy holds the fields to change:
-- null removes the channel's own value, so that the queue's default policy applies (see queue_set), and "none" lifts a
-- limit whatever that says. Takes effect on the next dequeue.
-- Returns 'set', or 'busy' if another transaction is changing the channel (ask again).
-- Locks:  the channel's row, or its creation_lock if there is none; does not wait.
-- Writes: channel, wake (insert).
create or replace function channel_set(p_channel text, p_policy jsonb default '{}') returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_id bigint;
  v_name text;
  v_changes text;
begin
  perform require_channel(p_channel);
  perform require_read_committed('channel_set');
  v_changes := policy_assignments('policy', p_policy, false);
  select channel_id(s.salt, p_channel) into v_id from setting s where s.is_only;
  select c.name into v_name from channel c where c.id = v_id for update skip locked;
  if not found and not exists (select from channel c where c.id = v_id) and creation_lock('channel', v_id) then
    -- New statements, because their snapshots show what the previous holder of the lock has committed: the row may
    -- exist now, and another transaction may be changing it.
    if not exists (select from channel c where c.id = v_id) then
      insert into channel (id, name) values (v_id, p_channel);
    end if;
    select c.name into v_name from channel c where c.id = v_id for update skip locked;
  end if;
  if v_name is null then
    return 'busy';
  elsif v_name <> p_channel then
    raise exception using
      errcode = 'LQ004',
      message = format('channel %L has the same id as channel %L and shares its policy', p_channel, v_name),
      hint = 'Rename one of the two channels.';
  end if;
  if v_changes is not null then
    -- A lifted limit: dequeue now has to tell it from other values.
    if exists (select from jsonb_each(p_policy) f where jsonb_typeof(f.value) = 'string') then
      perform nextval(pg_get_serial_sequence('policy_change', 'id'));
    end if;
    execute format('update channel set %s where id = $1', v_changes) using v_id;
  end if;
  insert into wake (channel_id, channel_name) values (v_id, p_channel);
  perform sleepers_notify();
  return 'set';
end
$$;
