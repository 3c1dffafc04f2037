-- dead_insert: make dead letters of messages that this transaction has locked. p_errors, p_states and p_attempts have
-- one element per message; without p_attempts each has had one attempt more than its row says.
-- Locks:  nothing more.
-- Writes: message (delete), dead (insert).
create or replace function dead_insert(
  p_messages tid[], p_errors text[], p_states bytea[] default null, p_attempts integer[] default null
) returns void
language sql
as $$
  with gone as (
    delete from message m using unnest(p_messages, p_errors, p_states, p_attempts) u(tid, error, state, attempts)
    where m.ctid = u.tid
    returning m.*, u.error as last_error, u.state as last_state, u.attempts as last_attempts
  )
  insert into dead (
    message_id, channel, dequeue_at, created_at, buried_at, attempts, max_attempts, key, content, state, error,
    headers
  )
  select g.id, coalesce(g.channel_name, (select c.name from channel c where c.id = g.channel_id),
      (select min(w.channel_name) from wake w where w.channel_id = g.channel_id), 'channel ' || g.channel_id),
    g.dequeue_at, g.created_at, floor(extract(epoch from clock_timestamp()) * 1000)::bigint,
    coalesce(g.last_attempts, g.attempts + 1), g.max_attempts, g.key, g.content,
    coalesce(g.last_state, g.state), coalesce(g.last_error, g.error),
    g.headers
  from gone g
$$;
