-- dead_insert: make dead letters of messages that this transaction has locked. p_errors, p_states and p_attempts have
-- one element per message; without p_attempts each has had one attempt more than its row says.
-- For each message with the header "lonnymq-on-buried", a notice is created in the channel that it names: a message
-- with the same content, and headers that say which message was buried, in which channel, and why (the end of its
-- error); with p_attempts, which lease_expire passes, also that its lease expired. It has no key and no limit of
-- attempts, and max_size does not apply.
-- Those that wait for the result of one of the messages are notified.
-- Locks:  nothing more.
-- Writes: message (delete; insert of notices), dead, wake (insert, for notices).
create or replace function dead_insert(
  p_messages tid[], p_errors text[], p_states bytea[] default null, p_attempts integer[] default null
) returns void
language plpgsql
as $$
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_is_awaited constant boolean := exists (
    select from message m where m.ctid = any(p_messages) and result_keep_ms(m.headers) is not null
  );
begin
  with gone as (
    delete from message m using unnest(p_messages, p_errors, p_states, p_attempts) u(tid, error, state, attempts)
    where m.ctid = u.tid
    returning m.*, u.error as last_error, u.state as last_state, u.attempts as last_attempts
  ),
  buried as (
    insert into dead (
      message_id, channel, dequeue_at, created_at, buried_at, attempts, max_attempts, key, content, state, error,
      headers
    )
    select g.id, coalesce(g.channel_name, (select c.name from channel c where c.id = g.channel_id),
        (select min(w.channel_name) from wake w where w.channel_id = g.channel_id), 'channel ' || g.channel_id),
      g.dequeue_at, g.created_at, v_now, coalesce(g.last_attempts, g.attempts + 1), g.max_attempts, g.key, g.content,
      coalesce(g.last_state, g.state), coalesce(g.last_error, g.error), g.headers
    from gone g
    returning *
  ),
  noticed as (
    insert into message (channel_id, channel_name, dequeue_at, created_at, content, headers)
    select o.id, case when (select c.name from channel c where c.id = o.id) = o.channel then null else o.channel end,
      v_now, v_now, b.content,
      (b.headers - '{lonnymq-on-buried, lonnymq-keep-result-ms}'::text[]) || jsonb_build_object(
        'lonnymq-buried-id', b.message_id::text, 'lonnymq-buried-channel', b.channel,
        'lonnymq-buried-error', right(coalesce(b.error, ''), 1000)
      ) || case when p_attempts is null then '{}'::jsonb else '{"lonnymq-buried-expired": "true"}' end
    from buried b
    cross join setting s
    cross join lateral (
      select b.headers ->> 'lonnymq-on-buried' as channel, channel_id(s.salt, b.headers ->> 'lonnymq-on-buried') as id
    ) o
    where s.is_only and o.channel is not null
    order by b.message_id
    returning id, channel_id, channel_name, dequeue_at
  )
  insert into wake (channel_id, channel_name, at, message_id, to_at, to_id, waiting)
  select n.channel_id, coalesce(n.channel_name, (select c.name from channel c where c.id = n.channel_id)), n.dequeue_at,
    n.id, n.dequeue_at, n.id, 1
  from noticed n;
  if found then
    perform sleepers_notify();
  end if;
  if v_is_awaited then
    perform pg_notify(result_event(), '');
  end if;
end
$$;
