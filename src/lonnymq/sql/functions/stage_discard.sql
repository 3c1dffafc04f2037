-- stage_discard: delete staged rows of parts that will not be published. Does nothing to what is published.
-- Returns how many messages they had.
-- Locks:  those rows, skipping locked ones.
-- Writes: stage (delete).
create or replace function stage_discard(p_publication text, p_parts uuid[]) returns bigint
language plpgsql security definer
set search_path from current
as $$
declare
  v_messages bigint;
begin
  with gone as (
    delete from stage t where t.ctid = any(array(
      select s.ctid from stage s where s.publication = p_publication and s.part = any(p_parts) for update skip locked
    ))
    returning cardinality(t.contents) as messages
  )
  select coalesce(sum(g.messages), 0) into v_messages from gone g;
  return v_messages;
end
$$;
