-- queue_set: change the queue's settings: history ('off', 'metadata' or 'full'), max_content_bytes and
-- quantum.
-- Returns the settings.
-- Locks:  the settings' row.
-- Writes: setting.
create or replace function queue_set(p_settings jsonb default '{}') returns jsonb
language plpgsql security definer
set search_path from current
as $$
declare
  v_key text;
  v_value jsonb;
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
    else
      perform reject('settings', v_key, 'limited to history, max_content_bytes and quantum');
    end if;
  end loop;
  update setting s set history = coalesce(p_settings ->> 'history', s.history),
    max_content_bytes = coalesce((p_settings ->> 'max_content_bytes')::bigint, s.max_content_bytes),
    quantum = coalesce((p_settings ->> 'quantum')::integer, s.quantum)
  where s.is_only and p_settings <> '{}';
  return (
    select jsonb_build_object('history', s.history, 'max_content_bytes', s.max_content_bytes, 'quantum', s.quantum)
    from setting s
  );
end
$$;
