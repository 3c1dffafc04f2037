-- cron_delete: delete a cron. Messages that it has created stay.
-- Returns 'deleted', 'unknown', or 'busy' if another transaction has it locked (ask again).
-- Locks:  the cron's row; does not wait.
-- Writes: cron (delete).
create or replace function cron_delete(p_name text) returns text
language plpgsql security definer
set search_path from current
as $$
begin
  perform require_cron(p_name);
  perform require_read_committed('cron_delete');
  perform from cron c where c.name = p_name for update skip locked;
  if not found then
    return case when exists (select from cron c where c.name = p_name) then 'busy' else 'unknown' end;
  end if;
  delete from cron c where c.name = p_name;
  return 'deleted';
end
$$;
