-- group_is_live: whether one of these members has not ended: it waits or is leased. Members mostly end in their order,
-- so the last one is looked at first.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function group_is_live(p_members bigint[]) returns boolean
language plpgsql stable
as $$
declare
  v_id bigint;
begin
  for v_id in select u.id from unnest(p_members) with ordinality u(id, ordinal) order by u.ordinal desc loop
    if exists (select from message m where m.id = v_id) then
      return true;
    end if;
  end loop;
  return false;
end
$$;
