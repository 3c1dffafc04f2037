-- message_show: live messages in the order given, with their status: 'waiting', 'scheduled' (not due yet) or 'leased',
-- and by whom and until when. If p_preview_bytes is given, content and state are cut to that length; content_bytes is
-- the full length.
-- Returns a row for each message that exists.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_show(p_ids bigint[], p_preview_bytes integer default null)
returns table (
  message_id bigint, channel text, key text, status text, dequeue_at bigint, created_at bigint, attempts integer,
  max_attempts integer, suspicion smallint, error text, worker text, leased_at bigint, unlock_at bigint,
  content_bytes integer, content bytea, state bytea, headers jsonb
)
language plpgsql stable security definer
set search_path from current
as $$
begin
  if p_ids is null then
    perform reject('ids', null, 'an array');
  elsif p_preview_bytes < 0 then
    perform reject('preview_bytes', p_preview_bytes::text, '0 or more');
  end if;
  return query
  select m.id, coalesce(m.channel_name, c.name), m.key, case when l.message_id is not null then 'leased'
      when m.dequeue_at > floor(extract(epoch from clock_timestamp()) * 1000) and m.dequeue_at > m.created_at
        then 'scheduled' else 'waiting' end,
    m.dequeue_at, m.created_at, coalesce(l.attempt, m.attempts),
    coalesce(m.max_attempts, nullif(coalesce(c.max_attempts, s.max_attempts), -1)), m.suspicion, m.error, l.worker,
    l.leased_at, l.unlock_at, octet_length(m.content),
    case when p_preview_bytes is null then m.content else substr(m.content, 1, p_preview_bytes) end,
    case when p_preview_bytes is null then m.state else substr(m.state, 1, p_preview_bytes) end, m.headers
  from setting s
  cross join unnest(p_ids) with ordinality u(id, ordinal)
  cross join lateral (select m.* from message m where m.id = u.id offset 0) m
  left join lateral (select c.name, c.max_attempts from channel c where c.id = m.channel_id offset 0) c on true
  left join lateral (select l.* from lease l where l.message_id = m.id offset 0) l on true
  order by u.ordinal;
end
$$;
