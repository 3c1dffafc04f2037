-- cron_overdue: crons that are not paused, and since how many seconds each should have ticked, or should have been
-- looked at by a worker for the first time; 0 if it is not due yet. The most overdue ones first.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function cron_overdue(p_limit integer default 100) returns table (name text, overdue_s float8)
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform require_batch(p_limit);
  return query
  select c.name, greatest(0, extract(epoch from clock_timestamp() - c.due_at))::float8
  from (
    -- Two searches, so that each reads only the beginning of the index.
    (select c.name, c.mark_at as due_at from cron c where not c.is_paused and c.next_at is null limit p_limit)
    union all
    (select c.name, c.next_at from cron c where not c.is_paused and c.next_at is not null order by c.next_at
    limit p_limit)
  ) c
  order by c.due_at, c.name limit p_limit;
end
$$;
