-- stage_prune: delete staged rows of all roles that will not be published: they were staged longer ago than
-- p_older_than, or their publication is already published.
-- Returns how many messages they had.
-- Locks:  those rows, skipping locked ones.
-- Writes: stage (delete).
create or replace function stage_prune(p_older_than interval default '1 day') returns bigint
language plpgsql security definer
set search_path from current
set jit = off
as $$
declare
  v_messages bigint;
begin
  -- A minimum age, because a load that another role is staging at the moment must not be deleted.
  if p_older_than not between interval '1 hour' and interval '100 years' then
    perform reject('older_than', p_older_than::text, 'between 1 hour and 100 years');
  end if;
  with gone as (
    delete from stage t where t.ctid = any(array(
      select s.ctid from stage s
      where s.staged_at < now() - p_older_than or exists (
        select from publication p where p.role = s.role and p.name = s.publication
      )
      for update skip locked
    ))
    returning cardinality(t.contents) as messages
  )
  select coalesce(sum(g.messages), 0) into v_messages from gone g;
  return v_messages;
end
$$;
