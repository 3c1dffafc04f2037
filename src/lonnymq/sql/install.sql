-- install.sql: the table of contents. The installer runs these files in this order, in one transaction, with
-- search_path set to the queue's schema. A pattern stands for all files that it matches, in the order of their names.
-- Functions may call functions of later files, because bodies are not checked while the files run; only views need
-- theirs before them.

-- Tables, and the types that functions pass to one another.
\ir tables/setting.sql
\ir tables/migration.sql
\ir tables/channel.sql
\ir tables/policy_change.sql
\ir tables/tenant.sql
\ir tables/turn.sql
\ir tables/creation_lock.sql
\ir tables/message.sql
\ir tables/lease.sql
\ir tables/wake.sql
\ir tables/dead.sql
\ir tables/result.sql
\ir tables/history.sql
\ir tables/stage.sql
\ir tables/sleeper.sql
\ir tables/worker.sql
\ir tables/worker_process.sql
\ir tables/cron.sql
\ir tables/claim.sql
\ir tables/message_group.sql
\ir tables/audit.sql
\ir tables/exact_count.sql
\ir tables/dequeue_types.sql

-- Checks of arguments, and conversions.
\ir functions/reject.sql
\ir functions/headers_error.sql
\ir functions/require_*.sql
\ir functions/to_epoch.sql
\ir functions/from_epoch.sql
\ir functions/bytes_as_json.sql
\ir functions/caller_role.sql

-- What a tenant may do, and see, in its own channels. Before the views, because its views call them.
\ir functions/tenant_*.sql

-- What operators see, and tenants.
\ir views/*.sql

-- Messages: created, chosen, leased, acknowledged, cancelled, shown.
\ir functions/message_*.sql
\ir functions/acknowledgements.sql
\ir functions/lease_*.sql
\ir functions/dead_*.sql
\ir functions/result_*.sql

-- Turns, and the parts of dequeue.
\ir functions/turn_*.sql
\ir functions/wake_*.sql
\ir functions/dequeue_*.sql
\ir functions/clock_*.sql

-- Channels and their policies.
\ir functions/channel_*.sql
\ir functions/creation_lock.sql
\ir functions/policy_*.sql

-- Messages that are loaded in bulk, or leased and completed together; groups, which release another message when they
-- have ended; crons, which create messages.
\ir functions/stage_*.sql
\ir functions/stream_*.sql
\ir functions/claim_*.sql
\ir functions/group_*.sql
\ir functions/cron_*.sql

-- Workers that sleep, and workers that die; what their processes report.
\ir functions/sleeper*.sql
\ir functions/worker_*.sql
\ir functions/server_pids.sql

-- What is remembered.
\ir functions/history_*.sql
\ir functions/relation_seal.sql
\ir functions/ids_advance.sql

-- The queue as a whole: settings, figures, checks, privileges.
\ir functions/queue_*.sql
\ir functions/audit_*.sql
\ir functions/kind_*.sql
\ir functions/table_*.sql

-- The plans of the statements above.
\ir plans.sql
