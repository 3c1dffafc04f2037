-- lease_uncapped: how many leases of a channel do not count towards its cap, because they were taken before it had one:
-- their end is not reported, so they are counted as long as there are any. Inlined into the statements that call it.
-- Reads:  lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function lease_uncapped(p_channel_id bigint) returns bigint
language sql stable
as $$
  select count(*) from lease l where l.channel_id = p_channel_id and not l.is_capped
$$;
