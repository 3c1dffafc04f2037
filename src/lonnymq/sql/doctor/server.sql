-- server: this session's database and role, the server's version and connections, and the settings that affect a queue.
select current_database()::text as database, current_user::text as role, r.rolsuper as is_superuser,
  pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_all_sessions,
  current_setting('server_version_num')::integer as version_number, current_setting('server_version') as version,
  pg_is_in_recovery() as is_standby, clock_timestamp() as clock,
  -- Not pg_stat_activity, which hides other roles' sessions from most roles.
  (select coalesce(sum(d.numbackends), 0)::integer from pg_stat_database d) as connections,
  has_database_privilege(current_database(), 'create') as may_create_schema,
  (
    select jsonb_object_agg(s.name, case when s.unit is null then s.setting else s.setting || ' ' || s.unit end)
    from pg_settings s
    where s.name in (
      'autovacuum', 'autovacuum_naptime', 'default_transaction_isolation', 'default_transaction_read_only', 'fsync',
      'full_page_writes', 'idle_in_transaction_session_timeout', 'lock_timeout', 'max_connections',
      'max_prepared_transactions', 'statement_timeout', 'superuser_reserved_connections', 'synchronous_commit',
      'track_counts', 'transaction_timeout'
    )
  ) as settings
from pg_roles r
where r.rolname = current_user;
