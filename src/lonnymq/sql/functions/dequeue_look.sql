-- dequeue_look: begin a full look: forget the hints, end leases whose time is over, and look for stamps from the
-- future. Part of message_dequeue.
-- Returns
--   h           the hints to look by
--   looked_at   when looking began: ending leases is work, and no part of what a look costs
--   last_wake   the last wake there is
--   is_more     more leases may have expired than one call ends
--   is_swept    turns may have been made due, and their wakes may lie far back
-- Reads:  lease, the sequence of wakes.
-- Locks:  what lease_expire and turn_sweep lock.
-- Writes: what lease_expire and turn_sweep write.
create or replace function dequeue_look(
  inout h dequeue_hints, p_now bigint,
  out looked_at bigint, out last_wake bigint, out is_more boolean, out is_swept boolean
)
language plpgsql
as $$
begin
  last_wake := (select last_value from wake_id_seq);
  looked_at := p_now;
  is_more := false;
  -- A pass that has not reached the end of its lane goes on, so that no wake can hide the others for good.
  if (h.soon).low_id is null then
    h.soon.next_id := 0;
  end if;
  if (h.bulk).low_id is null then
    h.bulk.next_id := 0;
  end if;
  if exists (select from lease l where l.unlock_at <= p_now order by l.unlock_at limit 1) then
    is_more := lease_expire(p_now);
    looked_at := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  end if;
  -- Also if the clock was set back since the last look.
  is_swept := (h.sweep_at > p_now and h.full_at <= p_now) is not true;
  if is_swept then
    select s.sweep_at, s.cursor[1], s.cursor[2], s.cursor[3]
    into h.sweep_at, h.rewind_channel_id, h.rewind_at, h.rewind_id
    from turn_sweep(p_now, array[h.rewind_channel_id, h.rewind_at, h.rewind_id]) s;
  end if;
  h.full_at := p_now;
  h.turn_at := -9223372036854775808;
end
$$;
