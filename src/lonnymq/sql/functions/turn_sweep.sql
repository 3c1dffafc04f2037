-- turn_sweep: the clock stepped back, and turns stamped before that seem to be due only in the future: make them due;
-- messages that were not meant to wait seem to be scheduled (see message_rewind); and leases seem to last until then: let
-- them last as long as they were given for, from now. What is due now may be more than the caller takes, so those who
-- sleep are notified.
-- Returns when to sweep again, and the cursor of message_rewind. Part of message_dequeue.
-- Locks:  such turns, messages and leases, skipping locked ones.
-- Writes: turn, message, lease, wake (insert).
create or replace function turn_sweep(p_now bigint, p_cursor bigint[], out sweep_at bigint, out cursor bigint[])
language plpgsql
as $$
declare
  v_turns tid[];
  v_leases tid[];
  v_is_rewound boolean;
begin
  -- First, because the stamps of turns and leases say where to look.
  select r.is_rewound, r.cursor into v_is_rewound, cursor from message_rewind(p_now, p_cursor) r;
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
    -- A heartbeat since then has set the end right.
    update lease set leased_at = p_now, unlock_at = case when unlock_at < leased_at then unlock_at
      else p_now + unlock_at - leased_at end
    where ctid = any(v_leases);
  end if;
  if v_is_rewound or v_turns is not null or v_leases <> '{}' then
    perform sleepers_notify();
    sweep_at := p_now;
  else
    sweep_at := p_now + greatest(10000000, 100 * ((extract(epoch from clock_timestamp()) * 1000000)::bigint - p_now));
  end if;
end
$$;
