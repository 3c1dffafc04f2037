-- after_failover: what can be wrong after a failover, a restore or a logical copy: rows of (kind, name, number,
-- detail). Some read whole tables, but not history. Unqualified names are resolved by search_path.
select * from (
  select 'timeline', '', ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint, ''
) t
union all
select 'sequence', s.name, s.highest, s.last_value::text
from (
  select 'message',
    greatest((select max(id) from message), (select max(message_id) from lease), (select max(message_id) from dead)),
    pg_sequence_last_value(pg_get_serial_sequence('message', 'id'))
  union all
  select 'wake', greatest((select max(id) from wake), (select max(wake_id) from turn)),
    pg_sequence_last_value(pg_get_serial_sequence('wake', 'id'))
  union all
  select 'history', (select id from history order by xid desc, id desc limit 1),
    pg_sequence_last_value('history_id_seq')
  union all
  select 'audit', (select max(id) from audit), pg_sequence_last_value(pg_get_serial_sequence('audit', 'id'))
) s(name, highest, last_value)
where s.highest > coalesce(s.last_value, 0)
union all
select 'lease', count(distinct l.worker)::text, count(*),
  to_char(max(from_epoch(l.unlock_at / 1000)) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS UTC')
from lease l
where not exists (select from worker_sessions() s where s.name = l.worker)
having count(*) > 0
union all
select 'cron', c.name, extract(epoch from clock_timestamp() - c.next_at)::bigint, c.catch_up
from cron c
where not c.is_paused and c.next_at < clock_timestamp() - interval '1 minute'
union all
select 'clock', '', c.ahead_us / 1000000, ''
from (
  select greatest((select max(l.leased_at) from lease l), (select max(t.last_at) from turn t),
    (select m.created_at * 1000 from message m order by m.id desc limit 1))
    - (extract(epoch from clock_timestamp()) * 1000000)::bigint
) c(ahead_us)
where c.ahead_us > 2000000
union all
select 'history', '', h.xid, pg_snapshot_xmax(pg_current_snapshot())::text
from (select h.xid from history h order by h.xid desc, h.id desc limit 1) h
where h.xid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
union all
select 'salt', min(c.name), count(*), ''
from channel c cross join setting s
where c.id <> channel_id(s.salt, c.name)
having count(*) > 0
union all
select 'publication', '', count(*), '' from stage having count(*) > 0
union all
select 'standby', current_setting('synchronous_standby_names'), 0, ''
where current_setting('synchronous_standby_names') <> '' and pg_has_role(current_user, 'pg_read_all_stats', 'usage')
  and not exists (select from pg_stat_replication r where r.sync_state in ('sync', 'quorum'))
union all
select 'subscription', s.subname::text, 0, ''
from pg_subscription s
where s.subenabled and s.subdbid = (select d.oid from pg_database d where d.datname = current_database())
union all
select 'slot', s.slot_name::text, pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::bigint, s.slot_type
from pg_replication_slots s
where not s.active and s.restart_lsn is not null;
