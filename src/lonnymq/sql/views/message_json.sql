-- message_json: each live message as JSON. Content is shown as JSON if it is JSON text, as a string if it is other
-- text, and otherwise in base64.
create or replace view message_json as
select m.id, coalesce(m.channel_name, c.name) as channel, m.key, jsonb_build_object(
  'id', m.id, 'channel', coalesce(m.channel_name, c.name), 'key', m.key, 'dequeue_at', m.dequeue_at,
  'created_at', m.created_at, 'attempts', m.attempts,
  'max_attempts', coalesce(m.max_attempts, nullif(coalesce(c.max_attempts, s.max_attempts), -1)),
  'suspicion', m.suspicion,
  'status', case when l.message_id is not null then 'leased'
    when m.dequeue_at > floor(extract(epoch from clock_timestamp()) * 1000) and m.dequeue_at > m.created_at
      then 'scheduled' else 'waiting' end,
  'worker', l.worker, 'error', m.error, 'content_bytes', octet_length(m.content), 'content', bytes_as_json(m.content),
  'state', bytes_as_json(m.state), 'headers', m.headers
) as message
from message m
cross join setting s
left join channel c on c.id = m.channel_id
left join lease l on l.message_id = m.id;
