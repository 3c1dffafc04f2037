-- install.sql: the table of contents. The installer runs these files in this order, in one transaction, with search_path
-- set to the queue's schema. psql can do the same with \i after `set search_path to my_queue, pg_temp`.

-- Tables, and the types that functions pass to one another.
\ir tables/setting.sql
\ir tables/migration.sql
\ir tables/channel.sql
\ir tables/turn.sql
\ir tables/creation_lock.sql
\ir tables/message.sql
\ir tables/lease.sql
\ir tables/wake.sql
\ir tables/dead.sql
\ir tables/history.sql
\ir tables/stage.sql
\ir tables/sleeper.sql
\ir tables/cron.sql
\ir tables/claim.sql
\ir tables/dequeue_types.sql

-- Checks of arguments, and conversions.
\ir functions/reject.sql
\ir functions/require_read_committed.sql
\ir functions/require_channel.sql
\ir functions/require_length.sql
\ir functions/require_batch.sql
\ir functions/require_dequeue.sql
\ir functions/require_cron.sql
\ir functions/require_cron_instant.sql
\ir functions/to_epoch.sql
\ir functions/from_epoch.sql
\ir functions/bytes_as_json.sql
\ir functions/caller_role.sql
\ir functions/channel_id.sql
\ir functions/channel_waiting.sql
\ir functions/creation_lock.sql

-- A message is created.
\ir functions/queue_event.sql
\ir functions/sleepers_notify.sql
\ir functions/message_create.sql
\ir functions/message_create_many.sql
\ir functions/message_publish.sql
\ir functions/stage_prune.sql
\ir functions/stage_discard.sql
\ir functions/stream_publish.sql

-- It is leased.
\ir functions/history_rows.sql
\ir functions/history_record.sql
\ir functions/dead_insert.sql
\ir functions/lease_end.sql
\ir functions/lease_end_cancelled.sql
\ir functions/lease_expire.sql
\ir functions/channel_insert.sql
\ir functions/channel_keep_name.sql
\ir functions/turn_insert.sql
\ir functions/clock_step_fix_messages.sql
\ir functions/clock_step_fix.sql
\ir functions/dequeue_start_full_scan.sql
\ir functions/turn_lock_woken.sql
\ir functions/wake_total.sql
\ir functions/lease_count_uncapped.sql
\ir functions/turn_release_at.sql
\ir functions/turn_assess.sql
\ir functions/turn_read.sql
\ir functions/turn_share.sql
\ir functions/message_next.sql
\ir functions/message_late.sql
\ir functions/message_late_and_next.sql
\ir functions/turn_advance.sql
\ir functions/message_settle_one.sql
\ir functions/message_settle.sql
\ir functions/turn_refund.sql
\ir functions/queue_next_due.sql
\ir functions/dequeue_retry_after.sql
\ir functions/message_dequeue.sql
\ir functions/message_read.sql

-- Its attempt ends, or it is cancelled or redriven.
\ir functions/lease_lock.sql
\ir functions/message_heartbeat.sql
\ir functions/message_complete.sql
\ir functions/message_defer.sql
\ir functions/message_bury.sql
\ir functions/message_give_back.sql
\ir functions/message_cancel.sql
\ir functions/message_cancel_key.sql
\ir functions/dead_list.sql
\ir functions/dead_redrive.sql
\ir functions/dead_redrive_channel.sql
\ir functions/dead_purge.sql
\ir functions/dead_purge_channel.sql

-- Messages are leased and completed together.
\ir functions/claim_backlog.sql
\ir functions/claim_take.sql
\ir functions/claim_messages.sql
\ir functions/claim_keep.sql
\ir functions/claim_read.sql
\ir functions/claim_complete.sql

-- Crons create messages.
\ir functions/cron_set.sql
\ir functions/cron_due.sql
\ir functions/cron_tick.sql
\ir functions/cron_pause.sql
\ir functions/cron_resume.sql
\ir functions/cron_delete.sql
\ir functions/cron_list.sql

-- Workers sleep.
\ir functions/queue_horizon.sql
\ir functions/sleeper_register.sql
\ir functions/sleeper_clear.sql

-- Operators look at the queue, configure it and keep its history.
\ir views/channel_status.sql
\ir views/message_json.sql
\ir views/message_status.sql
\ir views/lease_status.sql
\ir views/dead_letter.sql
\ir views/table_size.sql
\ir views/history_partition.sql
\ir functions/message_show.sql
\ir functions/message_peek.sql
\ir functions/channel_busiest.sql
\ir functions/relation_seal.sql
\ir functions/history_prepare.sql
\ir functions/history_origin.sql
\ir functions/history_require_past.sql
\ir functions/history_require.sql
\ir functions/history_follow.sql
\ir functions/history_slices.sql
\ir functions/history_done.sql
\ir functions/history_release.sql
\ir functions/history_readers.sql
\ir functions/history_blocker.sql
\ir functions/history_forget.sql
\ir functions/history_rebase.sql
\ir functions/channel_set.sql
\ir functions/channel_pause.sql
\ir functions/channel_resume.sql
\ir functions/channel_delete.sql
\ir functions/channel_explain.sql
\ir functions/queue_set.sql
\ir functions/queue_status.sql
\ir functions/queue_activity.sql
\ir functions/queue_check.sql
\ir functions/kind_rights.sql
\ir functions/queue_grant.sql
\ir functions/queue_revoke.sql
\ir functions/queue_seal.sql

-- The plans of the statements above.
\ir plans.sql
