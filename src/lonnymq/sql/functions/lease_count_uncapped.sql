-- lease_count_uncapped: how many leases of a channel turn.in_flight does not count, because the channel had no cap when
-- they were taken. Their end is not reported, so they are counted in the table until none is left. Inlined into the
-- statements that call it.
-- Reads:  lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function lease_count_uncapped(p_channel_id bigint) returns bigint
language sql stable
as $$
  select count(*) from lease l where l.channel_id = p_channel_id and not l.is_capped
$$;
