-- tenant_history_list: the finished attempts in one channel of the calling tenant, as history recorded them, the latest
-- first: p_limit of those that ended before p_before (milliseconds; null: now). Not shown: workers, contents, and what
-- handlers have kept.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_history_list(
  p_channel text, p_limit integer default 100, p_before bigint default null
)
returns table (
  message_uuid uuid, channel text, outcome text, attempt integer, created_at bigint, dequeue_at bigint,
  leased_at bigint, ended_at bigint, error text, content_bytes integer
)
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform tenant_require(p_channel);
  perform require_batch(p_limit);
  return query
  select message_uuid(f.message_id), f.channel, f.outcome, f.attempt, f.created_at, f.dequeue_at, f.leased_at,
    f.ended_at, f.error, f.content_bytes
  from (
    select h.* from history h
    where h.channel = p_channel collate "C" and h.ended_at < coalesce(p_before, 9223372036854775807)
    order by h.ended_at desc limit p_limit
  ) f;
end
$$;
