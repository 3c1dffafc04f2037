-- dead_purge: delete dead letters permanently.
-- Returns per message, in the order given: 'purged', 'busy' (another transaction has it locked: ask again), or
-- 'unknown'. p_before: as for dead_redrive.
-- Locks:  the dead letters, skipping locked ones.
-- Writes: dead (delete).
create or replace function dead_purge(p_ids bigint[], p_before timestamptz default null)
returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_before constant bigint := coalesce(to_epoch(p_before), 9223372036854775807);
  v_locked tid[];
  v_purged bigint[];
begin
  if p_ids is null then
    perform reject('ids', null, 'an array');
  end if;
  perform require_read_committed('dead_purge');
  select array_agg(s.ctid) into v_locked from (
    select d.ctid from dead d where d.message_id = any(p_ids) and d.buried_at + 0 < v_before
    for update skip locked
  ) s;
  with purged as (
    delete from dead d where d.ctid = any(v_locked) returning d.message_id
  )
  select array_agg(p.message_id) into v_purged from purged p;
  return query
  select u.id, case when u.id = any(v_purged) then 'purged'
    when (select true from dead d where d.message_id = u.id and d.buried_at + 0 < v_before) then 'busy'
    else 'unknown' end
  from unnest(p_ids) with ordinality u(id, ordinal)
  order by u.ordinal;
end
$$;
