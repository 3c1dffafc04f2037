-- dequeue_outlook: what message_dequeue replies if it leased nothing: 'busy', or 'empty' and how long to wait. Part of
-- message_dequeue. p_is_busy: this is known to be so; p_was_full: the call has looked at everything.
-- Reads:  turn, lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function dequeue_outlook(
  h dequeue_hints, p_now bigint, p_is_busy boolean, p_was_full boolean, p_next_full_at bigint,
  out outcome text, out wait_ms bigint
)
language plpgsql
as $$
declare
  v_is_busy boolean := p_is_busy;
  v_due_at bigint;
begin
  if p_was_full and not v_is_busy then
    select * into v_is_busy, v_due_at from queue_outlook(p_now);
  elsif not v_is_busy then
    -- When everything may be looked at again: nobody reports what another call held at the last look and then left.
    v_due_at := least(p_next_full_at, h.full_at + 2 * h.full_cost, (
      select t.next_at from turn t where t.next_at > p_now order by t.next_at limit 1
    ));
  end if;
  outcome := case when v_is_busy then 'busy' else 'empty' end;
  wait_ms := case when v_is_busy then 0 else greatest(0, least(v_due_at - p_now, 60000000) + 999) / 1000 end;
end
$$;
