-- claim_read: messages that are leased under these tokens, to be processed.
-- Returns per message, in the order given: 'held' and the message, or only 'cancelled' or 'lease_lost'.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function claim_read(p_ids bigint[], p_tokens bigint[])
returns table (
  message_id bigint, outcome text, channel text, attempt integer, key text, dequeue_at bigint, created_at bigint,
  leased_at bigint, content bytea, state bytea, headers jsonb
)
language plpgsql stable security definer
set search_path from current
as $$
begin
  if p_ids is null or p_tokens is null then
    perform reject(case when p_ids is null then 'ids' else 'tokens' end, null, 'an array');
  end if;
  perform require_length('tokens', cardinality(p_tokens), cardinality(p_ids));
  return query
  select u.id, case when l.message_id is null then 'lease_lost' when m.id is null then 'cancelled' else 'held' end,
    coalesce(m.channel_name, c.name), l.attempt, m.key, m.dequeue_at, m.created_at, l.leased_at / 1000, m.content,
    m.state, m.headers
  from unnest(p_ids, p_tokens) with ordinality u(id, token, ordinal)
  left join lateral (
    select l.message_id, l.channel_id, l.attempt, l.leased_at from lease l
    where l.message_id = u.id and l.token = u.token offset 0
  ) l on true
  left join lateral (
    select m.id, m.channel_name, m.key, m.dequeue_at, m.created_at, m.content, m.state, m.headers from message m
    where m.id = l.message_id offset 0
  ) m on true
  left join lateral (select c.name from channel c where c.id = l.channel_id offset 0) c on true
  order by u.ordinal;
end
$$;
