-- dequeue_retry_after: what message_dequeue replies if it leased nothing: 'busy', or 'empty' and how long to wait. Part
-- of message_dequeue.
-- p_is_busy: the caller knows that the answer is 'busy'. p_has_scanned: this call has made a full scan. p_next_scan_at:
-- when the next one is allowed.
-- Reads:  turn, lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function dequeue_retry_after(
  p_hints dequeue_hints, p_now bigint, p_is_busy boolean, p_has_scanned boolean, p_next_scan_at bigint,
  out outcome text, out wait_ms bigint
)
language plpgsql
as $$
declare
  v_is_busy boolean := p_is_busy;
  v_due_at bigint;
begin
  if p_has_scanned and not v_is_busy then
    select * into v_is_busy, v_due_at from queue_next_due(p_now);
  elsif not v_is_busy then
    -- No later than the next full scan: only that finds a turn that another call had locked and left without a wake.
    v_due_at := least(p_next_scan_at, p_hints.full_scan_at + 2 * p_hints.full_scan_us, (
      select t.next_at from turn t where t.next_at > p_now order by t.next_at limit 1
    ));
  end if;
  outcome := case when v_is_busy then 'busy' else 'empty' end;
  wait_ms := case when v_is_busy then 0 else greatest(0, least(v_due_at - p_now, 60000000) + 999) / 1000 end;
end
$$;
