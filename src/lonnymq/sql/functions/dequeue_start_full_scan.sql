-- dequeue_start_full_scan: begin a full scan: reset the hints, end expired leases, announce a new default policy, and
-- correct timestamps from the future. Part of message_dequeue.
-- Returns
--   hints               the hints to use for the full scan
--   scan_started_at     when the scan itself began; ending leases is not part of its cost
--   last_wake_id        the newest wake there is
--   has_more_expired    more leases may have expired, or more channels be waiting for a change of policy to be
--                       announced, than one call handles
--   is_clock_corrected  turns may have been made due, and their wakes may be far back
-- Reads:  lease, setting, policy_change, the sequence of wakes.
-- Locks:  as lease_expire, policy_announce and clock_step_fix.
-- Writes: as lease_expire, policy_announce and clock_step_fix.
create or replace function dequeue_start_full_scan(
  inout hints dequeue_hints, p_now bigint,
  out scan_started_at bigint, out last_wake_id bigint, out has_more_expired boolean, out is_clock_corrected boolean
)
language plpgsql
as $$
begin
  last_wake_id := (select last_value from wake_id_seq);
  scan_started_at := p_now;
  has_more_expired := false;
  -- A pass that has not reached the end of its lane continues, so that no wake can hide the others behind it for good.
  if (hints.soon).lowest_id is null then
    hints.soon.next_id := 0;
  end if;
  if (hints.bulk).lowest_id is null then
    hints.bulk.next_id := 0;
  end if;
  if exists (select from lease l where l.unlock_at <= p_now order by l.unlock_at limit 1) then
    has_more_expired := lease_expire(p_now);
    scan_started_at := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  end if;
  if pg_sequence_last_value('policy_change_id_seq') is not null then
    has_more_expired := policy_announce(p_now) or has_more_expired;
  end if;
  -- Also if the clock was set back since the last full scan.
  is_clock_corrected := (hints.clock_check_at > p_now and hints.full_scan_at <= p_now) is not true;
  if is_clock_corrected then
    select f.next_check_at, f.cursor[1], f.cursor[2], f.cursor[3]
    into hints.clock_check_at, hints.clock_check_channel_id, hints.clock_check_dequeue_at, hints.clock_check_id
    from clock_step_fix(p_now,
      array[hints.clock_check_channel_id, hints.clock_check_dequeue_at, hints.clock_check_id]) f;
  end if;
  hints.full_scan_at := p_now;
  hints.min_next_at := -9223372036854775808;
  hints.min_return_at := -9223372036854775808;
  hints.quantum := (select s.quantum from setting s);
end
$$;
