-- tenant_peek: message_peek for a tenant, in one of its channels. Not shown: workers, suspicion, and what handlers have
-- kept.
-- Returns rows as tenant_show.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_peek(p_channel text, p_limit integer default 10, p_preview_bytes integer default 1000)
returns table (
  message_uuid uuid, channel text, key text, status text, dequeue_at bigint, created_at bigint, attempts integer,
  max_attempts integer, error text, leased_at bigint, content_bytes integer, content bytea
)
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform tenant_require(p_channel);
  return query
  select message_uuid(m.message_id), m.channel, m.key, m.status, m.dequeue_at, m.created_at, m.attempts, m.max_attempts,
    m.error, m.leased_at, m.content_bytes, m.content
  from message_peek(p_channel collate "default", p_limit, false, p_preview_bytes) m;
end
$$;
