-- message_status_of: what has become of messages, in the order given. The status is 'waiting', 'scheduled' (not due
-- yet), 'leased', 'completed', 'buried', 'cancelled', or 'unknown': such a message never existed, or it has ended
-- and nothing of it was kept. 'completed' and 'cancelled' are known while the result is kept (see result_keep_ms),
-- 'buried' while the dead letter exists. `at` is, in milliseconds: when it is due, when it was leased, or when it
-- ended. `content` is the result. `progress` and `progress_note` are what the current attempt last reported with a
-- heartbeat.
-- Returns a row per id.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_status_of(p_ids bigint[])
returns table (
  message_id bigint, status text, attempt integer, worker text, at bigint, error text, content bytea, progress real,
  progress_note text
)
language plpgsql stable security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
begin
  if p_ids is null then
    perform reject('ids', null, 'an array');
  elsif cardinality(p_ids) > 10000 then
    perform reject('ids', cardinality(p_ids)::text || ' ids', 'at most 10000');
  end if;
  -- A message that was redriven has a dead letter no more, so live messages come first.
  return query
  select u.id, coalesce(m.status, d.status, r.outcome, 'unknown'), coalesce(m.attempt, d.attempts), m.worker,
    coalesce(m.at, d.buried_at, r.ended_at), coalesce(m.error, d.error), r.content,
    (nullif(m.progress, -1) / 10000.0)::real, nullif(m.progress_note, '')
  from unnest(p_ids) with ordinality u(id, ordinal)
  left join lateral (
    select case when l.message_id is not null then 'leased'
        when m.dequeue_at > v_now and m.dequeue_at > m.created_at then 'scheduled' else 'waiting' end as status,
      coalesce(l.attempt, m.attempts) as attempt, l.worker, coalesce(l.leased_at / 1000, m.dequeue_at) as at, m.error,
      l.progress, l.progress_note
    from (select m.* from message m where m.id = u.id offset 0) m
    left join lateral (select l.* from lease l where l.message_id = m.id offset 0) l on true
  ) m on true
  left join lateral (
    select 'buried' as status, d.attempts, d.buried_at, d.error from dead d where d.message_id = u.id offset 0
  ) d on m.status is null
  left join lateral (
    select r.outcome, r.ended_at, r.content from result r
    where r.message_id = u.id and r.expires_at > v_now
    order by r.ended_at desc limit 1
  ) r on m.status is null and d.status is null
  order by u.ordinal;
end
$$;
