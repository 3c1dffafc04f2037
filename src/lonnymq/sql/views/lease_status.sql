-- lease_status: each attempt in progress.
create or replace view lease_status as
select l.message_id, coalesce(m.channel_name, c.name) as channel, l.worker, l.attempt,
  from_epoch(l.leased_at / 1000) as leased_at, from_epoch(l.unlock_at / 1000) as unlock_at,
  l.unlock_at < extract(epoch from clock_timestamp()) * 1000000 as is_expired,
  m.id is null as is_cancelled, l.is_shared, (nullif(l.progress, -1) / 10000.0)::real as progress,
  nullif(l.progress_note, '') as progress_note
from lease l
left join channel c on c.id = l.channel_id
left join message m on m.id = l.message_id;
