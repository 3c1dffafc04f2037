-- turn_refund: of the messages that message_settle has chosen, some were cancelled before message_dequeue could lease them:
-- take them out of their turns' counts and rate limits again, and make those turns due, because a turn that was parked as
-- full is not. Part of message_dequeue: the turns are locked and were written by this transaction, so nobody else has seen
-- them full, and nobody needs to be woken.
-- Reads:  lease, turn.
-- Locks:  nothing more.
-- Writes: turn.
create or replace function turn_refund(v settlement) returns void
language sql
as $$
  update turn t set
    version = t.version + 1,
    next_at = v.settled_at,
    release_at = t.release_at - g.count * coalesce(v.intervals[g.place], 0),
    in_flight = t.in_flight - case when v.are_capped[g.place] then g.count else 0 end,
    waiting = t.waiting + g.count
  from (
    select u.place, count(*) as count
    from unnest(v.ids, v.places) u(id, place)
    where (select true from lease l where l.message_id = u.id and l.leased_at = v.settled_at) is null
    group by u.place
  ) g
  where t.ctid = (select n.ctid from turn n where n.channel_id = v.channel_ids[g.place] order by n.version desc limit 1)
$$;
