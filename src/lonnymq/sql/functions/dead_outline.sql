-- dead_outline: dead_show without what a reader may not see: content, state and headers.
-- Returns a row for each dead letter that exists.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function dead_outline(p_ids bigint[])
returns table (
  message_id bigint, channel text, key text, attempts integer, error text, created_at bigint, buried_at bigint,
  content_bytes integer
)
language sql stable security definer
set search_path from current
as $$
  select s.message_id, s.channel, s.key, s.attempts, s.error, s.created_at, s.buried_at, s.content_bytes
  from dead_show(p_ids, 0) s
$$;
