-- message_run_now: make waiting messages due now that are scheduled for later. Their channel's pause, cap, rate limit
-- and turn still apply.
-- Returns per message, in the order given: 'due' (it is due now, or was already), 'leased' (a worker has it: nothing is
-- changed), 'busy' (another transaction has it locked: ask again), or 'unknown'.
-- Locks:  the messages, skipping locked ones.
-- Writes: message, wake (insert).
create or replace function message_run_now(p_ids bigint[]) returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_locked tid[];
begin
  if p_ids is null then
    perform reject('ids', null, 'an array');
  elsif cardinality(p_ids) > 10000 then
    perform reject('ids', cardinality(p_ids) || ' ids', 'at most 10000');
  end if;
  perform require_read_committed('message_run_now');
  select array_agg(s.ctid) into v_locked from (
    select m.ctid from message m where m.id = any(p_ids) for update skip locked
  ) s;
  -- A dequeue does not lock messages, so it may be leasing one of these. Then that was due later than it is from now
  -- on: its new time lies below the mark that the dequeue sets, where leased messages are skipped.
  with moved as (
    update message m set dequeue_at = v_now
    where m.ctid = any(v_locked) and m.dequeue_at > v_now
      and (select true from lease l where l.message_id = m.id) is null
    returning m.id, m.channel_id, m.channel_name
  )
  insert into wake (channel_id, channel_name, at, message_id, to_at, to_id)
  select m.channel_id, max(m.channel_name), v_now, min(m.id), v_now, max(m.id) from moved m group by m.channel_id;
  if found then
    perform sleepers_notify();
  end if;
  return query
  select u.id, case
    when m.id is null then 'unknown'
    when (select true from lease l where l.message_id = m.id) then 'leased'
    when m.dequeue_at <= v_now then 'due'
    else 'busy'
  end
  from unnest(p_ids) with ordinality u(id, ordinal)
  left join lateral (select m.id, m.dequeue_at from message m where m.id = u.id offset 0) m on true
  order by u.ordinal;
end
$$;
