-- lease_expire: end expired leases, like a defer without delay: the message waits for its channel's normal turn, or is
-- buried if this was its last attempt. Part of message_dequeue. Sleepers are notified, because this dequeue may leave
-- the messages to other workers.
--
-- Which attempts a lost lease spends:
-- - If the holder processed no other message in its process (lease.is_shared is false): its own attempt.
-- - If it did: none, because any of those messages may have killed the process. The message becomes suspect instead
--   (message.suspicion 1, then 2, from where on workers run it alone) and is not buried. So an innocent message never
--   loses attempts by the fault of another, and a harmful one is found, because it is lost while it runs alone.
-- - If a suspect is lost while it runs alone: its own attempt and those for which it was suspected; suspicion becomes
--   3. It does not matter whether a worker ran it alone or a client holds one message at a time: the leases look the
--   same.
-- - If max_attempts is 1: its own attempt in any case, because at most one attempt is promised.
-- message_defer resets suspicion.
--
-- A message that is locked (another transaction is cancelling it) keeps its lease until a later full scan.
-- Returns whether there may be more expired leases than one call ends.
-- Locks:  expired leases and their messages, at most 200, skipping locked ones.
-- Writes: lease (delete), message, dead, history, wake (insert).
create or replace function lease_expire(p_now bigint) returns boolean
language plpgsql
as $$
declare
  v_leases tid[];
  v_messages tid[];
  v_errors text[];
  v_attempts integer[];
  v_suspicions smallint[];
  v_is_buried boolean[];
  v_waiting tid[];
  v_is_more boolean := false;
begin
  -- Of a message that was cancelled while it was leased, only the lease is left. Search only the oldest leases, so that
  -- the cost is the same however many have expired at once.
  v_leases := array(
    select o.ctid
    from (select l.ctid, l.message_id from lease l where l.unlock_at <= p_now order by l.unlock_at limit 1000) o
    where (select true from message m where m.id = o.message_id) is null
    limit 200
  );
  if cardinality(v_leases) > 0 then
    v_is_more := lease_end_cancelled(v_leases) = 200;
  end if;

  select array_agg(s.lease), array_agg(s.message), array_agg(s.attempts + p.spent),
    array_agg(case when p.spent = 0 then greatest(s.suspicion, least(s.suspicion + 1, 2))
      when s.suspicion > 0 then 3 else 0 end),
    array_agg(p.spent > 0 and coalesce(s.attempts + p.spent >= s.max_attempts, false)),
    array_agg(format('the lease of attempt %s expired%s: %s', s.attempt, ' (worker ' || s.worker || ')', case p.spent
      when 0 then 'no attempt was spent, because its worker had other messages in the same process'
      when 1 then 'an attempt was spent'
      else format('%s attempts were spent, because the message was lost while it ran alone, and %s too', p.spent,
        case p.spent when 2 then 'an earlier loss counts' else format('%s earlier losses count', p.spent - 1) end)
    end))
  into v_leases, v_messages, v_attempts, v_suspicions, v_is_buried, v_errors
  from (
    select l.ctid as lease, m.ctid as message, m.attempts, m.suspicion, l.attempt, l.worker, l.is_shared,
      coalesce(m.max_attempts, (
        select nullif(coalesce(c.max_attempts, s.max_attempts), -1)
        from setting s left join channel c on c.id = m.channel_id where s.is_only
      )) as max_attempts
    from lease l
    -- Not "=": while the planner believes that the tables are empty, it would start from all messages.
    join message m on m.id = any(array[l.message_id])
    where l.unlock_at <= p_now
    order by l.unlock_at limit 200 for update of l, m skip locked
  ) s
  cross join lateral (
    select case when s.is_shared and s.max_attempts is distinct from 1 then 0
      when s.suspicion in (1, 2) then 1 + s.suspicion else 1 end as spent
  ) p;
  if v_leases is not null then
    v_is_more := v_is_more or cardinality(v_leases) = 200;
    perform history_record(v_leases, v_messages, 'expired', v_errors);
    if true = any(v_is_buried) then
      perform dead_insert(array_agg(u.message), array_agg(u.error), null, array_agg(u.attempts))
      from unnest(v_messages, v_errors, v_attempts, v_is_buried) u(message, error, attempts, is_buried)
      where u.is_buried;
    end if;
    with kept as (
      update message m set attempts = u.attempts, suspicion = u.suspicion, error = u.error
      from unnest(v_messages, v_attempts, v_suspicions, v_errors) u(tid, attempts, suspicion, error)
      where m.ctid = u.tid
      returning m.ctid
    )
    select array_agg(k.ctid) into v_waiting from kept k;
    perform lease_end(v_leases, v_waiting);
  end if;
  return v_is_more;
end
$$;
