-- result_prune: empty the two tables of the ring in which every result has expired. Workers call it about once an
-- hour (see history_prepare_if_due). A table that another transaction uses is left for the next call.
-- Locks:  the tables that it empties in ACCESS EXCLUSIVE mode, without waiting. Results are inserted into others.
-- Writes: result (truncate).
create or replace function result_prune() returns void
language plpgsql security definer
set search_path from current
as $$
declare
  v_today constant bigint := floor(extract(epoch from clock_timestamp()) / 86400)::bigint;
  v_table text;
  v_is_used boolean;
begin
  -- Those for yesterday and for eight days from now.
  foreach v_table in array array['result_' || (v_today - 1) % 10, 'result_' || (v_today + 8) % 10] loop
    execute format('select exists (select from %I)', v_table) into v_is_used;
    if v_is_used then
      begin
        execute format('lock table %I in access exclusive mode nowait', v_table);
        execute format('truncate %I', v_table);
      exception when lock_not_available then
        null;
      end;
    end if;
  end loop;
end
$$;
