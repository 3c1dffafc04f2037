-- channel_set: change a channel's policy, and make the channel if there is none. p_policy holds what is to change:
-- max_concurrency, release_interval_ms, release_burst, weight, max_size, max_attempts, is_paused; null puts one back to
-- its default. Takes effect on the next dequeue.
-- Returns 'set', or 'busy' if another transaction is changing the channel (ask again).
-- Locks:  the channel's row, or the right to make it; does not wait.
-- Writes: channel, wake (insert).
create or replace function channel_set(p_channel text, p_policy jsonb default '{}') returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_id bigint;
  v_name text;
  v_key text;
  v_value jsonb;
  v_limit record;
begin
  perform require_channel(p_channel);
  perform require_read_committed('channel_set');
  if p_policy is null or jsonb_typeof(p_policy) <> 'object' then
    perform reject('policy', p_policy::text, 'a JSON object');
  end if;
  for v_key, v_value in select * from jsonb_each(p_policy) loop
    select * into v_limit from (values
      ('max_concurrency', 1::bigint, 2147483647::bigint), ('release_interval_ms', 1, 86400000), ('release_burst', 1, 10000),
      ('weight', 1, 1000), ('max_size', 0, 9223372036854775807), ('max_attempts', 1, 2147483647), ('is_paused', null, null)
    ) l(key, low, high) where l.key = v_key;
    if not found then
      perform reject('policy', v_key, 'made of max_concurrency, release_interval_ms, release_burst, weight, max_size, '
        'max_attempts and is_paused');
    elsif v_key = 'is_paused' then
      if jsonb_typeof(v_value) not in ('boolean', 'null') then
        perform reject(v_key, v_value::text, 'true, false or null');
      end if;
    elsif jsonb_typeof(v_value) <> 'null' and (jsonb_typeof(v_value) <> 'number' or v_value::numeric % 1 <> 0
        or v_value::numeric not between v_limit.low and v_limit.high) then
      perform reject(v_key, v_value::text, format('a whole number between %s and %s, or null', v_limit.low, v_limit.high));
    end if;
  end loop;

  select channel_id(s.salt, p_channel) into v_id from setting s where s.is_only;
  select c.name into v_name from channel c where c.id = v_id for update skip locked;
  if not found and not exists (select from channel c where c.id = v_id) and creation_lock('channel', v_id) then
    -- In new statements, which see what the last holder of the lock has committed: it may be there now, and in change.
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
      hint = 'Use another name for one of them.';
  end if;
  update channel c set
    max_concurrency = case when p_policy ? 'max_concurrency' then (p_policy ->> 'max_concurrency')::integer
      else c.max_concurrency end,
    release_interval_ms = case when p_policy ? 'release_interval_ms' then (p_policy ->> 'release_interval_ms')::bigint
      else c.release_interval_ms end,
    release_burst = case when p_policy ? 'release_burst' then coalesce((p_policy ->> 'release_burst')::integer, 1)
      else c.release_burst end,
    weight = case when p_policy ? 'weight' then coalesce((p_policy ->> 'weight')::integer, 1) else c.weight end,
    max_size = case when p_policy ? 'max_size' then (p_policy ->> 'max_size')::bigint else c.max_size end,
    max_attempts = case when p_policy ? 'max_attempts' then (p_policy ->> 'max_attempts')::integer else c.max_attempts end,
    is_paused = case when p_policy ? 'is_paused' then coalesce((p_policy ->> 'is_paused')::boolean, false)
      else c.is_paused end
  where c.id = v_id;
  insert into wake (channel_id, channel_name) values (v_id, p_channel);
  perform sleepers_notify();
  return 'set';
end
$$;
