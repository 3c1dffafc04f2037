-- tenant_cancel_key: message_cancel_key for a tenant, in its channels only.
-- Returns one row, as tenant_cancel; the uuid is null if there is no such message.
-- Locks:  as message_cancel.
-- Writes: as message_cancel.
create or replace function tenant_cancel_key(p_channel text, p_key text, out message_uuid uuid, out outcome text)
language plpgsql security definer
set search_path from current
as $$
declare
  v_id bigint;
begin
  perform tenant_require(p_channel);
  select c.message_id, c.outcome into v_id, outcome
  from message_cancel_key(p_channel collate "default", p_key collate "default") c;
  message_uuid := message_uuid(v_id);
end
$$;
