-- stage_discard: delete the staged rows of some parts that this role will not publish. Published messages are not
-- affected.
-- Returns how many messages the rows had.
-- Locks:  those rows, skipping locked ones.
-- Writes: stage (delete).
create or replace function stage_discard(p_publication text, p_parts uuid[]) returns bigint
language plpgsql security definer
set search_path from current
as $$
declare
  v_role constant text := caller_role();
  v_messages bigint;
begin
  with gone as (
    delete from stage t where t.ctid = any(array(
      select s.ctid from stage s
      where s.role = v_role and s.publication = p_publication and s.part = any(p_parts)
      for update skip locked
    ))
    returning cardinality(t.contents) as messages
  )
  select coalesce(sum(g.messages), 0) into v_messages from gone g;
  return v_messages;
end
$$;
