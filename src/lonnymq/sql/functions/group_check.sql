-- group_check: make the callbacks of groups due whose members have all ended. Whoever ends a member, which names its
-- group in the header lonnymq-group, calls this after the commit; if nobody does, group_sweep finds the group later.
-- Returns per group, by the id of its callback and in the order given: 'released', 'waiting' (members are left), 'busy'
-- (another transaction has it or its callback locked: ask again), or 'unknown'.
-- Locks:  the groups and their callbacks, skipping locked ones.
-- Writes: message_group, message, wake (insert).
create or replace function group_check(p_ids bigint[]) returns table (callback_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_locked bigint[];
  v_busy bigint[];
begin
  if p_ids is null then
    perform reject('ids', null, 'an array');
  elsif cardinality(p_ids) > 10000 then
    perform reject('ids', cardinality(p_ids) || ' ids', 'at most 10000');
  end if;
  perform require_read_committed('group_check');
  select array_agg(s.callback_id) into v_locked from (
    select g.callback_id from message_group g where g.callback_id = any(p_ids) and not g.is_released
    for update skip locked
  ) s;
  v_busy := group_release(v_locked);
  return query
  select u.id, case
    when g.callback_id is null then 'unknown'
    when g.is_released then 'released'
    when u.id = any(v_locked) and u.id <> all(v_busy) then 'waiting'
    else 'busy'
  end
  from unnest(p_ids) with ordinality u(id, ordinal)
  left join lateral (
    select g.callback_id, g.is_released from message_group g where g.callback_id = u.id offset 0
  ) g on true
  order by u.ordinal;
end
$$;
