-- message_status: each live message, with its content.
create or replace view message_status as
select m.id as message_id, coalesce(m.channel_name, c.name) as channel,
  case when l.message_id is not null then 'leased'
    when m.dequeue_at > floor(extract(epoch from clock_timestamp()) * 1000) and m.dequeue_at > m.created_at
      then 'scheduled' else 'waiting' end as status,
  m.key, m.dequeue_at, m.created_at, m.attempts,
  coalesce(m.max_attempts, nullif(coalesce(c.max_attempts, s.max_attempts), -1)) as max_attempts, m.suspicion,
  l.worker, l.leased_at / 1000 as leased_at, m.error, octet_length(m.content) as content_bytes, m.content, m.state,
  m.headers
from message m
cross join setting s
left join channel c on c.id = m.channel_id
left join lease l on l.message_id = m.id;
