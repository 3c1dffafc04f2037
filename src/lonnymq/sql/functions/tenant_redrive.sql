-- tenant_redrive: dead_redrive for a tenant, by uuid and in its channels only, up to their max_size.
-- Returns per message, in the order given, as dead_redrive; 'unknown' also for dead letters of others, and 'dropped' if
-- the channel is full: the message remains a dead letter.
-- Locks:  as dead_redrive and tenant_enter.
-- Writes: as dead_redrive and tenant_enter.
create or replace function tenant_redrive(p_uuids uuid[]) returns table (message_uuid uuid, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_channel text;
  v_allowed bigint[] := '{}';
begin
  perform require_read_committed('tenant_redrive');
  for v_channel, v_ids in
    select f.channel collate "C", array_agg(distinct f.message_id) from tenant_find(p_uuids) f
    where (select true from dead d where d.message_id = f.message_id)
    group by f.channel collate "C" order by f.channel collate "C"
  loop
    v_allowed := v_allowed || v_ids[:coalesce(tenant_room(v_channel), cardinality(v_ids))];
  end loop;
  return query
  with found as materialized (
    select f.* from tenant_find(p_uuids) f
  ),
  redriven as materialized (
    select r.message_id, r.outcome from dead_redrive(v_allowed) r
  )
  select f.message_uuid, coalesce(r.outcome,
    case when (select true from dead d where d.message_id = f.message_id) then 'dropped' else 'unknown' end)
  from found f
  left join redriven r on r.message_id = f.message_id
  order by f.ordinal;
end
$$;
