-- group_release: make the callbacks due of groups that this transaction has locked and whose members have all ended.
-- It reads the members in a statement after the one that locked: so of two members that end at the same time, the check
-- that locks last sees that both have ended.
-- Returns those of these callbacks that another transaction has locked.
-- Locks:  the callbacks, skipping locked ones.
-- Writes: message_group, message, wake (insert).
create or replace function group_release(p_locked bigint[]) returns bigint[]
language plpgsql
as $$
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_ended bigint[];
  v_due bigint[] := '{}';
begin
  v_ended := array(
    select g.callback_id from message_group g
    where g.callback_id = any(p_locked) and not g.is_released and g.deadline_at > v_now and not group_is_live(g.members)
  );
  if cardinality(v_ended) > 0 then
    v_due := array(select r.message_id from message_run_now(v_ended) r where r.outcome <> 'busy');
  end if;
  update message_group g set is_released = true
  where g.callback_id = any(p_locked) and not g.is_released and (g.deadline_at <= v_now or g.callback_id = any(v_due));
  return array(select e from unnest(v_ended) e where e <> all(v_due));
end
$$;
