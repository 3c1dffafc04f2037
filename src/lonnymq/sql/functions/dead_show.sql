-- dead_show: dead letters in the order given. If p_preview_bytes is given, content and state are cut to that length;
-- content_bytes is the full length.
-- Returns a row for each dead letter that exists.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function dead_show(p_ids bigint[], p_preview_bytes integer default null)
returns table (
  message_id bigint, channel text, key text, attempts integer, error text, created_at bigint, buried_at bigint,
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
  select d.message_id, d.channel, d.key, d.attempts, d.error, d.created_at, d.buried_at, octet_length(d.content),
    case when p_preview_bytes is null then d.content else substr(d.content, 1, p_preview_bytes) end,
    case when p_preview_bytes is null then d.state else substr(d.state, 1, p_preview_bytes) end,
    d.headers
  from unnest(p_ids) with ordinality u(id, ordinal)
  cross join lateral (select d.* from dead d where d.message_id = u.id offset 0) d
  order by u.ordinal;
end
$$;
