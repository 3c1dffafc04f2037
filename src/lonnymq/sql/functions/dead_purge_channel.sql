-- dead_purge_channel: dead_purge for the oldest p_limit dead letters of a channel, or for those buried before p_before.
-- Returns how many were deleted. Call it until it returns 0.
-- Locks:  as dead_purge.
-- Writes: as dead_purge.
create or replace function dead_purge_channel(
  p_channel text, p_limit integer default 10000, p_before timestamptz default null
) returns bigint
language plpgsql security definer
set search_path from current
as $$
begin
  perform require_channel(p_channel);
  perform require_batch(p_limit);
  return (
    select count(*) from dead_purge(array(
      select d.message_id from dead d
      where d.channel = p_channel and (p_before is null or d.buried_at < to_epoch(p_before))
      order by d.message_id limit p_limit
    ), p_before) r where r.outcome = 'purged'
  );
end
$$;
