-- tenant_channels: the calling tenant's channels, as channel_status shows them. Of those with a
-- prefix, it knows the ones that a tenant has used, dequeue has seen, or a policy was set for.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function tenant_channels()
returns table (
  channel text, reason text, waiting bigint, leased bigint, head_uuid uuid, head_dequeue_at bigint,
  head_created_at bigint, next_release_at timestamptz, last_release_at timestamptz, max_concurrency integer,
  release_interval_ms bigint, max_size bigint, policy_sources jsonb
)
language plpgsql stable security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_names constant text[] := array(
    select t.name from tenant t where t.role = tenant_role() and not t.is_prefix
    union
    select c.name from tenant_ranges() r join channel c on c.name >= r.low collate "C" and c.name < r.high collate "C"
    union
    select u.name from tenant_ranges() r
    join tenant_channel u on u.name >= r.low collate "C" and u.name < r.high collate "C" and not u.is_prefix
  );
begin
  return query
  select v.channel, v.reason, v.waiting::bigint, v.leased, message_uuid(v.head_id), v.head_dequeue_at,
    v.head_created_at, v.next_release_at, v.last_release_at, v.max_concurrency, v.release_interval_ms, v.max_size,
    jsonb_build_object('max_concurrency', v.policy_sources -> 'max_concurrency', 'release_interval_ms',
      v.policy_sources -> 'release_interval_ms', 'max_size', v.policy_sources -> 'max_size')
  from channel_status v where v.channel = any(v_names) order by v.channel;
end
$$;
