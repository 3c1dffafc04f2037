-- queue_grant: let a role use this queue as a 'producer' (create, also again and again; cancel what it created by id or
-- key), a 'worker' (dequeue and acknowledge; tick crons), an 'operator' (everything but installing), or a 'reader' (views
-- and figures, no content).
-- Locks:  nothing.
-- Writes: privileges.
create or replace function queue_grant(p_role text, p_kind text) returns void
language plpgsql
set search_path from current
as $$
declare
  v_schema constant text := (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'turn'::regclass);
  v_functions text[];
  v_name text;
begin
  if not exists (select from pg_roles r where r.rolname = p_role) then
    perform reject('role', quote_literal(p_role), 'the name of an existing role');
  end if;
  v_functions := case p_kind
    when 'producer' then array['to_epoch', 'message_create', 'message_create_many', 'message_publish', 'message_cancel',
      'message_cancel_key', 'cron_set', 'cron_delete', 'stage_discard', 'stream_publish']
    when 'worker' then array['to_epoch', 'message_dequeue', 'message_read', 'message_complete', 'message_defer',
      'message_bury', 'message_give_back', 'message_heartbeat', 'queue_event', 'queue_horizon', 'sleeper_register',
      'sleeper_clear', 'history_prepare', 'stage_prune', 'cron_due', 'cron_tick', 'claim_backlog', 'claim_take', 'claim_plan',
      'claim_keep', 'claim_read', 'claim_complete']
    when 'reader' then array['to_epoch', 'from_epoch', 'channel_explain', 'channel_busiest', 'queue_status', 'queue_activity',
      'cron_list']
    when 'operator' then array['to_epoch', 'from_epoch', 'message_create', 'message_create_many', 'message_publish',
      'message_cancel', 'message_cancel_key', 'message_dequeue', 'message_read', 'message_complete', 'message_defer',
      'message_bury', 'message_give_back', 'message_heartbeat', 'queue_event', 'queue_horizon', 'sleeper_register',
      'sleeper_clear', 'history_prepare', 'stage_prune', 'channel_set', 'channel_pause', 'channel_resume',
      'channel_delete', 'channel_explain', 'dead_list', 'dead_redrive', 'dead_redrive_channel', 'dead_purge',
      'dead_purge_channel', 'message_peek', 'message_show', 'channel_busiest', 'queue_set', 'queue_status', 'queue_activity',
      'queue_check', 'bytes_as_json', 'cron_set', 'cron_due', 'cron_tick', 'cron_pause', 'cron_resume', 'cron_delete',
      'cron_list', 'stage_discard', 'stream_publish', 'claim_backlog', 'claim_take', 'claim_plan', 'claim_keep',
      'claim_read', 'claim_complete', 'history_follow', 'history_slices', 'history_done', 'history_readers', 'history_blocker',
      'history_forget']
  end;
  if v_functions is null then
    perform reject('kind', quote_literal(p_kind), '''producer'', ''worker'', ''operator'' or ''reader''');
  end if;
  execute format('grant usage on schema %I to %I', v_schema, p_role);
  execute format('grant select on migration to %I', p_role);
  for v_name in
    select p.oid::regprocedure::text from pg_proc p
    where p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'turn'::regclass)
      and p.proname = any(v_functions)
  loop
    execute format('grant execute on function %s to %I', v_name, p_role);
  end loop;
  if p_kind in ('producer', 'operator') then
    execute format('grant insert on stage to %I', p_role);
  end if;
  if p_kind in ('reader', 'operator') then
    execute format('grant select on channel_status, lease_status, dead_letter, table_size, history_partition to %I', p_role);
  end if;
  if p_kind = 'operator' then
    execute format('grant select on message_json, message_status, history, dead to %I', p_role);
  end if;
end
$$;
