-- clock_step_fix: after the clock stepped back, correct the timestamps from before that lie in the future. Part of a
-- full scan of message_dequeue.
-- - Turns seem to be due only later: they become due now.
-- - Messages created for immediate release seem to be scheduled: see clock_step_fix_messages.
-- - Leases seem to last longer than they were given for: they last that long from now.
-- Sleepers are notified, because more may become due than the caller takes.
-- Returns when to check again, and the cursor of clock_step_fix_messages.
-- Locks:  such turns, messages and leases, skipping locked ones.
-- Writes: turn, message, lease, wake (insert).
create or replace function clock_step_fix(
  p_now bigint, p_cursor bigint[], out next_check_at bigint, out cursor bigint[]
)
language plpgsql
as $$
declare
  v_turns tid[];
  v_leases tid[];
  v_has_fixed_messages boolean;
begin
  -- Messages first, because the timestamps of turns and leases tell where to look for them.
  select f.has_fixed, f.cursor into v_has_fixed_messages, cursor from clock_step_fix_messages(p_now, p_cursor) f;
  select array_agg(s.ctid) into v_turns from (
    select ctid from turn
    where next_at > p_now and last_at > p_now + 1000000
    order by next_at limit 1000 for update skip locked
  ) s;
  if v_turns is not null then
    update turn set version = version + 1, next_at = p_now, last_at = p_now
    where ctid = any(v_turns) and last_at > p_now + 1000000;
  end if;
  select array_agg(s.ctid) into v_leases
  from (select ctid, leased_at from lease where unlock_at > p_now order by unlock_at desc limit 1000) s
  where s.leased_at > p_now + 1000000;
  if v_leases is not null then
    v_leases := array(select ctid from lease where ctid = any(v_leases) for update skip locked);
    -- If unlock_at is before leased_at, a heartbeat by the new clock has already corrected it.
    update lease set leased_at = p_now, unlock_at = case when unlock_at < leased_at then unlock_at
      else p_now + unlock_at - leased_at end
    where ctid = any(v_leases);
  end if;
  if v_has_fixed_messages or v_turns is not null or v_leases <> '{}' then
    perform sleepers_notify();
    next_check_at := p_now;
  else
    next_check_at := p_now
      + greatest(10000000, 100 * ((extract(epoch from clock_timestamp()) * 1000000)::bigint - p_now));
  end if;
end
$$;
