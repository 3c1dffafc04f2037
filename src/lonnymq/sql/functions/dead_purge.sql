-- dead_purge: delete dead letters for good.
-- Returns per message, in the order given: 'purged', 'busy' (locked by another transaction: ask again), or 'unknown'.
-- Locks:  the dead letters, skipping locked ones.
-- Writes: dead (delete).
create or replace function dead_purge(p_ids bigint[]) returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_held tid[];
  v_gone bigint[];
begin
  if p_ids is null then
    perform reject('ids', null, 'an array');
  end if;
  perform require_read_committed('dead_purge');
  select array_agg(s.ctid) into v_held from (
    select d.ctid from dead d where d.message_id = any(p_ids) for update skip locked
  ) s;
  with gone as (
    delete from dead d where d.ctid = any(v_held) returning d.message_id
  )
  select array_agg(g.message_id) into v_gone from gone g;
  return query
  select u.id, case when u.id = any(v_gone) then 'purged'
    when (select true from dead d where d.message_id = u.id) then 'busy' else 'unknown' end
  from unnest(p_ids) with ordinality u(id, ordinal)
  order by u.ordinal;
end
$$;
