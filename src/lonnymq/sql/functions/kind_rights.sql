-- kind_rights: what each kind of role may do with this queue (see queue_grant): a privilege, the functions, tables or
-- views it is for, and the columns if not all of them.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function kind_rights() returns table (kind text, privilege text, names text[], columns text[])
language sql stable
set search_path from current
as $$
  values
    ('producer', 'EXECUTE', array['to_epoch', 'message_create', 'message_create_many', 'message_publish',
      'message_cancel', 'message_cancel_key', 'message_status_of', 'result_event', 'group_create', 'cron_set',
      'cron_delete', 'stage_discard', 'stream_publish'], null::text[]),
    ('worker', 'EXECUTE', acknowledgements() || array['to_epoch', 'message_dequeue', 'message_read', 'queue_event',
      'queue_horizon', 'sleeper_register', 'sleeper_clear', 'worker_register', 'worker_watch', 'worker_leave',
      'worker_report', 'history_prepare', 'history_prepare_if_due', 'stage_prune', 'cron_due', 'cron_tick',
      'claim_backlog', 'claim_take', 'claim_messages', 'claim_heartbeat', 'claim_read', 'claim_complete',
      'group_check', 'group_sweep', 'group_results'], null),
    ('reader', 'EXECUTE', array['to_epoch', 'from_epoch', 'channel_explain', 'channel_busiest', 'channel_overdue',
      'channel_page', 'channel_list', 'queue_status', 'queue_pulse', 'queue_activity', 'queue_tables', 'queue_count',
      'cron_list', 'cron_overdue', 'history_lag', 'history_readers', 'history_blocker', 'audit_page', 'message_page',
      'message_outline', 'message_peek_outline', 'message_status_outline', 'message_attempts', 'dead_page',
      'dead_outline', 'dead_groups'], null),
    ('operator', 'EXECUTE', acknowledgements() || array['to_epoch', 'from_epoch', 'message_create',
      'message_create_many', 'message_publish', 'message_cancel', 'message_cancel_key', 'message_dequeue',
      'message_read', 'queue_event', 'queue_horizon', 'sleeper_register', 'sleeper_clear', 'worker_register',
      'worker_watch', 'worker_leave', 'worker_report', 'worker_drain', 'history_prepare', 'history_prepare_if_due',
      'stage_prune', 'channel_set',
      'channel_pause', 'channel_resume', 'channel_delete', 'channel_explain', 'dead_list', 'dead_redrive',
      'dead_redrive_channel', 'dead_purge', 'dead_purge_channel', 'dead_page', 'dead_show', 'dead_groups',
      'message_page', 'message_peek', 'message_peek_outline', 'message_show', 'message_outline', 'message_attempts',
      'message_run_now', 'message_of_uuid', 'message_status_of', 'message_status_outline', 'dead_outline',
      'result_event',
      'channel_busiest', 'channel_overdue', 'channel_page', 'channel_list', 'queue_set', 'queue_status', 'queue_pulse',
      'queue_activity', 'queue_tables', 'queue_count', 'queue_check', 'cron_overdue', 'history_lag', 'bytes_as_json',
      'audit_record', 'audit_page', 'cron_set',
      'cron_due', 'cron_tick', 'cron_pause', 'cron_resume', 'cron_delete', 'cron_list', 'stage_discard',
      'stream_publish', 'claim_backlog', 'claim_take', 'claim_messages', 'claim_heartbeat', 'claim_read',
      'claim_complete', 'group_create', 'group_check', 'group_sweep', 'group_results',
      'history_follow', 'history_slices', 'history_done', 'history_readers', 'history_blocker', 'history_forget'],
      null),
    ('tenant', 'EXECUTE', array['to_epoch', 'from_epoch', 'tenant_create', 'tenant_create_many', 'tenant_cancel',
      'tenant_cancel_key', 'tenant_show', 'tenant_peek', 'tenant_channels', 'tenant_dead_list', 'tenant_redrive',
      'tenant_redrive_channel', 'tenant_history_list'], null),
    ('tenant', 'SELECT', array['tenant_status', 'tenant_dead_letter', 'tenant_history'], null),
    ('reader', 'SELECT', array['channel_status', 'lease_status', 'worker_status', 'dead_letter', 'table_size',
      'history_partition'], null),
    ('operator', 'SELECT', array['channel_status', 'lease_status', 'worker_status', 'dead_letter', 'table_size',
      'history_partition', 'message_json', 'message_status', 'history', 'dead', 'publication', 'stream'], null),
    -- Not the columns that record the owner and the age of a row.
    ('producer', 'INSERT', array['stage'], array['publication', 'part', 'ordinal', 'channel', 'contents', 'dequeue_ats',
      'delays_ms', 'keys', 'max_attempts', 'headers']),
    ('operator', 'INSERT', array['stage'], array['publication', 'part', 'ordinal', 'channel', 'contents', 'dequeue_ats',
      'delays_ms', 'keys', 'max_attempts', 'headers'])
$$;
