-- tenant_cancel: message_cancel for a tenant, by uuid and in its channels only.
-- Returns per message, in the order given, as message_cancel; 'unknown' also for messages of others.
-- Locks:  as message_cancel.
-- Writes: as message_cancel.
create or replace function tenant_cancel(p_uuids uuid[]) returns table (message_uuid uuid, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
begin
  return query
  with found as materialized (
    select f.* from tenant_find(p_uuids) f
  ),
  cancelled as materialized (
    select c.message_id, c.outcome from message_cancel(array(
      select distinct f.message_id from found f where f.message_id is not null
    )) c
  )
  select f.message_uuid, coalesce(c.outcome, 'unknown')
  from found f
  left join cancelled c on c.message_id = f.message_id
  order by f.ordinal;
end
$$;
