-- message_read: key, content, state and headers of leased messages that message_dequeue left out of its reply.
-- Returns a row for each message that exists and is leased under the given token.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_read(p_ids bigint[], p_tokens bigint[])
returns table (message_id bigint, key text, content bytea, state bytea, headers jsonb)
language plpgsql stable security definer
set search_path from current
as $$
begin
  if p_ids is null or p_tokens is null then
    perform reject(case when p_ids is null then 'ids' else 'tokens' end, null, 'an array');
  end if;
  perform require_length('tokens', cardinality(p_tokens), cardinality(p_ids));
  return query
  select m.id, m.key, m.content, m.state, m.headers
  from unnest(p_ids, p_tokens) u(id, token)
  cross join lateral (select from lease l where l.message_id = u.id and l.token = u.token offset 0) l
  cross join lateral (select m.id, m.key, m.content, m.state, m.headers from message m where m.id = u.id offset 0) m;
end
$$;
