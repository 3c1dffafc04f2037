-- result_prune: empty the tables of the ring in which every result has expired. Workers call it about once an
-- hour (see history_prepare_if_due). A table that another transaction uses is left for the next call.
-- Locks:  the tables that it empties in ACCESS EXCLUSIVE mode, without waiting. Results are inserted into others.
-- Writes: result (truncate).
create or replace function result_prune() returns void
language plpgsql security definer
set search_path from current
as $$
declare
  v_days constant numeric := extract(epoch from clock_timestamp()) / 86400;
  v_table text;
  v_is_used boolean;
begin
  -- Those for yesterday and, until noon, for eight days from now. Should the clock step back past midnight, the latter
  -- may have results again, so that it must not be emptied late in the day.
  foreach v_table in array array[
    'result_' || (floor(v_days) - 1)::bigint % 10, 'result_' || (floor(v_days + 0.5) + 8)::bigint % 10
  ] loop
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
