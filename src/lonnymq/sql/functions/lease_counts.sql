-- lease_counts: how many leases these channels have. It reads all leases, once: no index has them by channel, and
-- there are no more than the slots of all workers.
-- Reads:  lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function lease_counts(p_channel_ids bigint[]) returns table (channel_id bigint, leased bigint)
language plpgsql stable
set enable_indexscan = off
set enable_indexonlyscan = off
set enable_seqscan = on
set jit = off
as $$
begin
  return query
  select l.channel_id, count(*) from lease l where l.channel_id = any(p_channel_ids) group by l.channel_id;
end
$$;
