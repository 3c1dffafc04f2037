-- cron_pause: create no messages at a cron's ticks until cron_resume. Messages that were created stay.
-- Returns 'set', 'unchanged' if it is paused already, 'unknown', or 'busy' if another transaction has it locked (ask
-- again).
-- Locks:  the cron's row; does not wait.
-- Writes: cron.
create or replace function cron_pause(p_name text) returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_is_paused boolean;
begin
  perform require_cron(p_name);
  perform require_read_committed('cron_pause');
  select c.is_paused into v_is_paused from cron c where c.name = p_name for update skip locked;
  if not found then
    return case when exists (select from cron c where c.name = p_name) then 'busy' else 'unknown' end;
  elsif v_is_paused then
    return 'unchanged';
  end if;
  update cron c set is_paused = true where c.name = p_name;
  return 'set';
end
$$;
