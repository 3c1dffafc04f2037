-- cron_resume: end a pause. The next tick is the first one from now on; ticks during the pause are never caught up.
-- Returns 'set', 'unchanged' if it is not paused, 'unknown', or 'busy' if another transaction has it locked (ask
-- again).
-- Locks:  the cron's row; does not wait.
-- Writes: cron.
create or replace function cron_resume(p_name text) returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_is_paused boolean;
begin
  perform require_cron(p_name);
  perform require_read_committed('cron_resume');
  select c.is_paused into v_is_paused from cron c where c.name = p_name for update skip locked;
  if not found then
    return case when exists (select from cron c where c.name = p_name) then 'busy' else 'unknown' end;
  elsif not v_is_paused then
    return 'unchanged';
  end if;
  update cron c set
    is_paused = false,
    mark_at = greatest(clock_timestamp(), c.mark_at + interval '1 microsecond'),
    next_at = null
  where c.name = p_name;
  return 'set';
end
$$;
