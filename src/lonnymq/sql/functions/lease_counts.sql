-- lease_counts: how many leases these channels have. It reads all leases, once: no index has them by channel, and
-- there are no more than the slots of all workers.
-- Reads:  lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function lease_counts(p_channel_ids bigint[]) returns table (channel_id bigint, leased bigint)
language plpgsql stable
-- Without a condition on the index's column, the table is read nevertheless.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_indexonlyscan = off
set jit = off
as $$
begin
  if lease_index_is_cheap(1000) then
    return query
    select l.channel_id, count(*) from lease l
    where l.unlock_at > 0 and l.channel_id = any(p_channel_ids) group by l.channel_id;
  else
    return query
    select l.channel_id, count(*) from lease l where l.channel_id = any(p_channel_ids) group by l.channel_id;
  end if;
end
$$;
