-- lease_expire: end leases whose time is over, like a defer without delay: the normal turn releases the message again,
-- or it is buried if that was its last attempt. Part of message_dequeue.
-- A message that is locked (somebody is cancelling it) keeps its lease until a later look.
-- Returns whether there may be more than one call ends.
-- Locks:  expired leases and their messages, 200 at the most, skipping locked ones.
-- Writes: lease (delete), message, dead, history, wake (insert).
create or replace function lease_expire(p_now bigint) returns boolean
language plpgsql
as $$
declare
  v_leases tid[];
  v_messages tid[];
  v_errors text[];
  v_is_spent boolean[];
  v_is_capped boolean[];
  v_ids bigint[];
  v_channel_ids bigint[];
  v_dequeue_ats bigint[];
  v_is_more boolean := false;
begin
  -- Cancelled while leased: only the lease is left. Looked for among the oldest, so that each look costs the same however
  -- many have expired at once.
  select array_agg(s.ctid) into v_leases from (
    select l.ctid from lease l
    where l.ctid = any(array(
      select o.ctid
      from (select l.ctid, l.message_id from lease l where l.unlock_at <= p_now order by l.unlock_at limit 1000) o
      where (select true from message m where m.id = o.message_id) is null
      limit 200
    ))
    for update skip locked
  ) s;
  if v_leases is not null then
    v_is_more := cardinality(v_leases) = 200;
    with ended as (
      delete from lease l where l.ctid = any(v_leases) and l.unlock_at <= p_now returning l.channel_id, l.is_capped
    )
    insert into wake (channel_id, done, waiting)
    select e.channel_id, count(*) filter (where e.is_capped), count(*) from ended e group by e.channel_id;
  end if;

  select array_agg(s.lease), array_agg(s.message), array_agg(s.error), array_agg(s.is_spent), array_agg(s.is_capped),
    array_agg(s.id), array_agg(s.channel_id), array_agg(s.dequeue_at)
  into v_leases, v_messages, v_errors, v_is_spent, v_is_capped, v_ids, v_channel_ids, v_dequeue_ats
  from (
    select l.ctid as lease, m.ctid as message, m.id, m.channel_id, m.dequeue_at, l.is_capped,
      coalesce(l.attempt >= coalesce(m.max_attempts, (select c.max_attempts from channel c where c.id = m.channel_id)), false)
        as is_spent,
      format('the lease of attempt %s expired%s', l.attempt, ' (worker ' || l.worker || ')') as error
    from lease l
    -- Not "=": a planner that believes the tables empty would begin with all messages.
    join message m on m.id = any(array[l.message_id])
    where l.unlock_at <= p_now
    order by l.unlock_at limit 200 for update of l, m skip locked
  ) s;
  if v_leases is null then
    return v_is_more;
  end if;
  v_is_more := v_is_more or cardinality(v_leases) = 200;
  perform history_record(v_leases, v_messages, 'expired', v_errors);
  if true = any(v_is_spent) then
    perform dead_insert(array_agg(u.message), array_agg(u.error))
    from unnest(v_messages, v_errors, v_is_spent) u(message, error, is_spent)
    where u.is_spent;
  end if;
  update message m set attempts = m.attempts + 1, error = u.error
  from unnest(v_messages, v_errors) u(tid, error)
  where m.ctid = u.tid;
  delete from lease l where l.ctid = any(v_leases);
  insert into wake (channel_id, at, message_id, to_at, to_id, done, waiting)
  select u.channel_id, min(u.dequeue_at) filter (where not u.is_spent), min(u.id) filter (where not u.is_spent),
    max(u.dequeue_at) filter (where not u.is_spent), max(u.id) filter (where not u.is_spent), count(*) filter (where u.is_capped),
    count(*) filter (where not u.is_spent)
  from unnest(v_channel_ids, v_dequeue_ats, v_ids, v_is_spent, v_is_capped) u(channel_id, dequeue_at, id, is_spent, is_capped)
  group by u.channel_id;
  return v_is_more;
end
$$;
