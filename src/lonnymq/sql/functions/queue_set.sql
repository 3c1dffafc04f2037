-- queue_set: change the queue's settings: history ('off', 'metadata' or 'full'), max_content_bytes, quantum, and
-- default_policy. That holds fields of a channel's policy, except is_paused, for all channels that have no value of
-- their own; null removes a field, or all of them. It applies to each channel from its next turn on, and nothing is
-- written per channel. Channels that wait for a limit are woken later (see policy_announce).
-- Returns the settings.
-- Locks:  the settings' row: waits for another queue_set; no other call waits for it.
-- Writes: setting, policy_change.
create or replace function queue_set(p_settings jsonb default '{}') returns jsonb
language plpgsql security definer
set search_path from current
as $$
declare
  v_key text;
  v_value jsonb;
  v_changes text;
begin
  if p_settings is null or jsonb_typeof(p_settings) <> 'object' then
    perform reject('settings', p_settings::text, 'a JSON object');
  end if;
  for v_key, v_value in select * from jsonb_each(p_settings) loop
    if v_key = 'history' then
      if (v_value #>> '{}') is null or (v_value #>> '{}') not in ('off', 'metadata', 'full') then
        perform reject('history', v_value::text, '"off", "metadata" or "full"');
      end if;
    elsif v_key = 'max_content_bytes' then
      if jsonb_typeof(v_value) <> 'number' or v_value::numeric % 1 <> 0
          or v_value::numeric not between 1 and 67108864 then
        perform reject('max_content_bytes', v_value::text, 'a whole number between 1 and 67108864');
      end if;
    elsif v_key = 'quantum' then
      if jsonb_typeof(v_value) <> 'number' or v_value::numeric % 1 <> 0 or v_value::numeric not between 1 and 100 then
        perform reject('quantum', v_value::text, 'a whole number between 1 and 100');
      end if;
    elsif v_key = 'default_policy' then
      v_changes := policy_assignments('default_policy', case jsonb_typeof(v_value) when 'null' then (
        select jsonb_object_agg(f.name, null) from policy_fields() f where jsonb_typeof(f.range -> 0) <> 'boolean'
      ) else v_value end, true);
    else
      perform reject('settings', v_key, 'limited to history, max_content_bytes, quantum and default_policy');
    end if;
  end loop;
  update setting s set history = coalesce(p_settings ->> 'history', s.history),
    max_content_bytes = coalesce((p_settings ->> 'max_content_bytes')::bigint, s.max_content_bytes),
    quantum = coalesce((p_settings ->> 'quantum')::integer, s.quantum)
  where s.is_only and p_settings <> '{}';
  if v_changes is not null then
    execute format('update setting set %s where is_only', v_changes);
    -- A change that has not been announced to all channels yet is announced with this one.
    delete from policy_change where id = any(array(select c.id from policy_change c for update skip locked));
    insert into policy_change default values;
    perform sleepers_notify();
  end if;
  return (
    select jsonb_build_object('history', s.history, 'max_content_bytes', s.max_content_bytes, 'quantum', s.quantum,
      'default_policy', jsonb_build_object(
        -- default policy: written by tools/policy.py from model/policy.py
        'max_concurrency', s.max_concurrency, 'release_interval_ms', s.release_interval_ms, 'release_burst',
        s.release_burst, 'weight', s.weight, 'max_size', s.max_size, 'max_attempts', s.max_attempts
        -- end of default policy
      ))
    from setting s
  );
end
$$;
