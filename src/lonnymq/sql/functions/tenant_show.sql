-- tenant_show: message_show for a tenant, by uuid and in its channels only. Not shown: workers, suspicion, and what
-- handlers have kept.
-- Returns a row for each live message of the tenant.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_show(p_uuids uuid[], p_preview_bytes integer default null)
returns table (
  message_uuid uuid, channel text, key text, status text, dequeue_at bigint, created_at bigint, attempts integer,
  max_attempts integer, error text, leased_at bigint, content_bytes integer, content bytea
)
language plpgsql stable security definer
set search_path from current
as $$
begin
  return query
  select message_uuid(m.message_id), m.channel, m.key, m.status, m.dequeue_at, m.created_at, m.attempts, m.max_attempts,
    m.error, m.leased_at, m.content_bytes, m.content
  from message_show(array(
    select f.message_id from tenant_find(p_uuids) f where f.message_id is not null order by f.ordinal
  ), p_preview_bytes) m;
end
$$;
