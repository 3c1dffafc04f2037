-- channel_set: change a channel's policy, and create the channel if there is none. p_policy holds the fields to change;
-- null restores a field's default. Takes effect on the next dequeue.
-- Returns 'set', or 'busy' if another transaction is changing the channel (ask again).
-- Locks:  the channel's row, or its creation_lock if there is none; does not wait.
-- Writes: channel, wake (insert).
create or replace function channel_set(p_channel text, p_policy jsonb default '{}') returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_ranges constant jsonb := (select jsonb_object_agg(f.name, f.range) from policy_fields() f);
  v_id bigint;
  v_name text;
  v_key text;
  v_value jsonb;
  v_range jsonb;
  v_changes text;
begin
  perform require_channel(p_channel);
  perform require_read_committed('channel_set');
  if p_policy is null or jsonb_typeof(p_policy) <> 'object' then
    perform reject('policy', p_policy::text, 'a JSON object');
  end if;
  for v_key, v_value in select * from jsonb_each(p_policy) loop
    v_range := v_ranges -> v_key;
    if v_range is null then
      perform reject('policy', v_key, format('limited to the fields %s',
        (select string_agg(f, ', ' order by f) from jsonb_object_keys(v_ranges) f)));
    elsif jsonb_typeof(v_range -> 0) = 'boolean' then
      if jsonb_typeof(v_value) not in ('boolean', 'null') then
        perform reject(v_key, v_value::text, 'true, false or null');
      end if;
    elsif jsonb_typeof(v_value) <> 'null' and (jsonb_typeof(v_value) <> 'number' or v_value::numeric % 1 <> 0
        or v_value::numeric not between (v_range -> 0)::numeric and (v_range -> 1)::numeric) then
      perform reject(v_key, v_value::text,
        format('a whole number between %s and %s, or null', v_range -> 0, v_range -> 1));
    end if;
  end loop;

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
  -- The names and values have been checked: each value is now a whole number, true, false or null.
  select string_agg(format('%I = %s', f.key, case jsonb_typeof(f.value) when 'null' then 'default'
    when 'number' then f.value::bigint::text else f.value::text end), ', ')
  into v_changes from jsonb_each(p_policy) f;
  if v_changes is not null then
    execute format('update channel set %s where id = $1', v_changes) using v_id;
  end if;
  insert into wake (channel_id, channel_name) values (v_id, p_channel);
  perform sleepers_notify();
  return 'set';
end
$$;
