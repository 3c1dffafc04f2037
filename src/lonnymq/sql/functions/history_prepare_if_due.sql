-- history_prepare_if_due: call history_prepare if history is on and lacks a partition for one of the next 13 days, or
-- if attempts are in history_overflow. Every worker calls it, and there is no leader: the first that finds a partition
-- missing creates it, about once a day, and the others find that nothing is due. Moves at most 10,000 attempts out of
-- the overflow, so that the transaction stays short.
-- If nothing is due, it empties what has only expired results (see result_prune).
-- Returns in how many milliseconds this caller should call again, and how many partitions were created.
-- Locks:  if due, history in SHARE UPDATE EXCLUSIVE mode, without waiting; readers and writers are not blocked.
-- Writes: as history_prepare and result_prune.
create or replace function history_prepare_if_due(out wait_ms bigint, out created integer)
language plpgsql security definer
set search_path from current
as $$
declare
  c_days constant integer := 14;
  c_limit constant integer := 10000;
  v_today constant date := (clock_timestamp() at time zone 'UTC')::date;
  v_is_on constant boolean := (select s.history <> 'off' from setting s);
  v_has_overflow constant boolean := exists (select from history_overflow);
  v_days integer;
begin
  -- An hour, give or take 10%, so that workers that started together do not keep calling together.
  wait_ms := 3600000 * (0.9 + 0.2 * random());
  created := 0;
  select count(*) into v_days
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  where i.inhparent = 'history'::regclass
    and c.relname between 'history_' || to_char(v_today, 'YYYYMMDD')
      and 'history_' || to_char(v_today + c_days - 1, 'YYYYMMDD');
  if not v_has_overflow and (not v_is_on or v_days = c_days) then
    -- Only now: those that read results wait until this transaction has ended.
    perform result_prune();
    return;
  end if;
  begin
    lock table history in share update exclusive mode nowait;
  exception when lock_not_available then
    -- Another worker prepares, or the owner prunes.
    wait_ms := 5000 + 5000 * random();
    return;
  end;
  created := history_prepare(case when v_is_on then c_days else 0 end, c_limit);
  if v_has_overflow and exists (select from history_overflow) then
    wait_ms := 1000;
  end if;
end
$$;
