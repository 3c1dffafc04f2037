-- queue_next_due: after message_dequeue has found nothing in a full scan: is_busy, if other transactions hold turns
-- that are due, and due_at, when the next turn is due or the next lease ends.
-- Reads:  turn, lease, policy_change.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_next_due(p_now bigint, out is_busy boolean, out due_at bigint)
language plpgsql
as $$
begin
  is_busy := exists (select from turn t where t.next_at <= p_now order by t.next_at limit 1)
    or exists (select from turn t where t.return_at is not null order by t.return_at limit 1);
  due_at := least(
    (select t.next_at from turn t where t.next_at > p_now order by t.next_at limit 1),
    -- An expired lease that is still there is locked, or there were more of them than one full scan ends.
    (select case when l.unlock_at > p_now then l.unlock_at else p_now + 50000 end
      from lease l order by l.unlock_at limit 1),
    -- A new default policy is still to be announced to channels.
    (select p_now + 100000 from policy_change c where c.horizon is null limit 1)
  );
end
$$;
