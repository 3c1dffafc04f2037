-- channel_waiting: how many messages of a channel wait, as committed when the statement began. Cheap: it adds what
-- dequeue has folded into the turn and what is still in wakes.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_waiting(p_channel_id bigint) returns bigint
language sql stable
as $$
  select coalesce((select t.waiting from turn t where t.channel_id = p_channel_id order by t.version desc limit 1), 0)
    + coalesce((select sum(w.waiting) from wake w where w.channel_id = p_channel_id), 0)
$$;
