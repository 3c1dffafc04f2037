-- tenant_create: message_create for a tenant, in its channels only. Each attribute is limited as in message_create, and
-- max_attempts also by the channel's.
-- Returns 'created', 'duplicate' or 'dropped' as message_create, and the message's uuid in place of its id.
-- Locks:  as message_create; if the channel has a max_size, also its row of tenant_channel (see tenant_enter).
-- Writes: message, wake (insert), tenant_channel.
create or replace function tenant_create(
  p_channel text, p_content bytea, p_dequeue_at bigint default null, p_delay_ms bigint default null,
  p_key text default null, p_max_attempts integer default null, p_headers jsonb default null,
  out outcome text, out message_uuid uuid
)
language plpgsql security definer
set search_path from current
as $$
declare
  v_id bigint;
begin
  perform tenant_require_headers(p_channel, p_headers);
  perform tenant_enter(p_channel, p_max_attempts);
  select c.outcome, c.message_id into outcome, v_id
  from message_create(p_channel collate "default", p_content, p_dequeue_at, p_delay_ms, p_key collate "default",
    p_max_attempts, p_headers) c;
  message_uuid := message_uuid(v_id);
end
$$;
