-- wake_total: add up the wakes of a turn's channel, from wake p_from_id on. Inlined into the statements that call it.
-- Reads:  wake.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function wake_total(p_turn turn, p_from_id bigint, p_now bigint) returns setof wake_total
language sql stable
as $$
  select coalesce(sum(w.done), 0)::bigint, coalesce(sum(w.waiting), 0)::bigint,
    -- A bulk load is due no earlier than it is read, so that one with old times does not go ahead of every other
    -- channel.
    min(case when w.lane = 1 then greatest(w.at, p_now / 1000) else w.at end),
    min(w.at), min(w.message_id), max(w.to_at), max(w.to_id),
    (min(w.at), min(w.message_id)) <= (p_turn.mark_at, p_turn.mark_id),
    count(*) filter (where w.at is null or w.done > 0), max(w.id), min(w.channel_name), array_agg(w.ctid)
  from (
    select w.ctid, w.* from wake w
    where w.channel_id = p_turn.channel_id and w.id >= p_from_id
    order by w.id
  ) w
$$;
