-- turn_refund: correct the turns after some of the messages that message_settle had chosen were cancelled before
-- message_dequeue could lease them: remove those from the turns' counts and rate limits, and make these turns due,
-- because one may have been parked as if its cap were used up. Part of message_dequeue. No wake is needed: this
-- transaction has locked and written these turns itself, so no other has seen them parked.
-- Reads:  lease, turn.
-- Locks:  nothing more.
-- Writes: turn.
create or replace function turn_refund(p_settlement settlement) returns void
language sql
as $$
  update turn t set
    version = t.version + 1,
    next_at = p_settlement.settled_at,
    release_at = t.release_at - g.count * coalesce(p_settlement.intervals_us[g.turn_ordinal], 0),
    in_flight = t.in_flight - case when p_settlement.are_capped[g.turn_ordinal] then g.count else 0 end,
    waiting = t.waiting + g.count,
    released = t.released - g.count
  from (
    select u.turn_ordinal, count(*) as count
    from unnest(p_settlement.ids, p_settlement.turn_ordinals) u(id, turn_ordinal)
    where (
      select true from lease l where l.message_id = u.id and l.leased_at = p_settlement.settled_at
    ) is null
    group by u.turn_ordinal
  ) g
  where t.ctid = (
    select n.ctid from turn n
    where n.channel_id = p_settlement.channel_ids[g.turn_ordinal] order by n.version desc limit 1
  )
$$;
