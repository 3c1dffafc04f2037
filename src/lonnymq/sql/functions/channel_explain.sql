-- channel_explain: why a channel's next message is not released: 'unknown', 'empty', 'paused', 'capped', 'throttled',
-- 'scheduled', or 'ready' (it waits for a worker, or for its channel's turn), with the figures behind the reason.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function channel_explain(
  p_channel text,
  out reason text, out detail text, out waiting bigint, out leased bigint, out max_concurrency integer,
  out release_interval_ms bigint, out next_release_at timestamptz, out head_id bigint, out head_dequeue_at bigint
)
language plpgsql stable security definer
set search_path from current
-- For the instants in detail.
set timezone to 'UTC'
as $$
declare
  v_sources jsonb;
begin
  perform require_channel(p_channel);
  select v.waiting, v.leased, v.max_concurrency, v.release_interval_ms, v.next_release_at, v.head_id,
    v.head_dequeue_at, v.reason, v.policy_sources
  into waiting, leased, max_concurrency, release_interval_ms, next_release_at, head_id, head_dequeue_at, reason,
    v_sources
  from setting s cross join lateral channel_show(array[channel_id(s.salt, p_channel)]) v
  where s.is_only and v.channel = p_channel;
  reason := coalesce(reason, 'unknown');
  detail := case reason
    when 'unknown' then 'no message has been created in this channel and no policy has been set'
    when 'empty' then case leased when 0 then 'there is no message' when 1 then 'its only message is leased'
      else format('all %s messages are leased', leased) end
    when 'paused' then 'the channel is paused; channel_resume() ends the pause'
    when 'capped' then case leased when 1 then 'the only message allowed at a time is leased'
      else format('%s of %s allowed messages are leased', leased, max_concurrency) end
    when 'throttled' then format('the rate limit of one per %s ms allows the next release at %s',
      release_interval_ms, next_release_at)
    when 'scheduled' then format('the next message is scheduled for %s', from_epoch(head_dequeue_at))
    else 'the next message waits for a worker, or for its turn among the other channels'
  end || case when v_sources ->> case reason when 'capped' then 'max_concurrency' when 'throttled'
    then 'release_interval_ms' end = 'default' then ', by the default policy of the queue' else '' end;
end
$$;
