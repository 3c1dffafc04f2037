-- dead_list: dead letters with their content, oldest first, of one channel or all, p_limit at a time after the id
-- p_after.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function dead_list(p_channel text default null, p_limit integer default 100, p_after bigint default 0)
returns table (
  message_id bigint, channel text, key text, attempts integer, error text, created_at bigint, buried_at bigint,
  content bytea, state bytea, headers jsonb
)
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform require_batch(p_limit);
  if p_after is null then
    perform reject('after', null, 'a message id, or 0');
  end if;
  return query
  select d.message_id, d.channel, d.key, d.attempts, d.error, d.created_at, d.buried_at, d.content, d.state,
    d.headers
  from dead d
  where d.message_id > p_after and (p_channel is null or d.channel = p_channel)
  order by d.message_id limit p_limit;
end
$$;
