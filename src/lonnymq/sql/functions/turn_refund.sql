-- turn_refund: of the messages that message_settle_one has chosen of a turn, p_count were cancelled before message_dequeue
-- could lease them: take them out of its counts and of its rate limit again, and make it due, because what has been parked
-- as full is not. Part of message_dequeue: the turn is locked and was written by this transaction, so nobody else has seen
-- it full, and nobody needs to be woken.
-- Locks:  nothing more.
-- Writes: turn.
create or replace function turn_refund(
  p_channel_id bigint, p_count bigint, p_is_capped boolean, p_interval_us bigint, p_settled_at bigint
) returns void
language sql
as $$
  update turn t set
    version = t.version + 1,
    next_at = p_settled_at,
    release_at = t.release_at - p_count * coalesce(p_interval_us, 0),
    in_flight = t.in_flight - case when p_is_capped then p_count else 0 end,
    waiting = t.waiting + p_count
  where t.ctid = (select n.ctid from turn n where n.channel_id = p_channel_id order by n.version desc limit 1)
$$;
