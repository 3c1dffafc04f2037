-- turn_is_idle: whether nothing of the channel was waiting when its turn was last written: the turn is parked without a
-- message, or until a later message is due. With a cap or a rate limit, a turn that is due later may be waiting for
-- those. Pure; inlined.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_is_idle(p_turn turn, p_channel channel, p_now bigint) returns boolean
language sql immutable
as $$
  select case
    when p_turn.next_at is null then p_turn.waiting <= 0
    else p_turn.next_at > p_now and p_turn.last_at <= p_now
      and p_channel.max_concurrency is null and p_channel.release_interval_ms is null
  end
$$;
