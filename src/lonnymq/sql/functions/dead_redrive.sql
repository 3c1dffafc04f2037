-- dead_redrive: return dead letters to their channels, to be released at once, with the same id and no attempts spent.
-- Returns per message, in the order given: 'redriven', 'duplicate' (a live message has the same key: it remains a dead
-- letter), 'busy' (another transaction has it locked: ask again), or 'unknown'. With p_before, a message that was
-- buried then or later is 'unknown': one that somebody has redriven keeps its id if it fails again.
-- Locks:  the dead letters, skipping locked ones; keys as in message_create.
-- Writes: dead (delete), message, wake (insert).
create or replace function dead_redrive(p_ids bigint[], p_before timestamptz default null)
returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_before constant bigint := coalesce(to_epoch(p_before), 9223372036854775807);
  v_locked tid[];
  v_redriven bigint[];
begin
  if p_ids is null then
    perform reject('ids', null, 'an array');
  end if;
  perform require_read_committed('dead_redrive');
  select array_agg(s.ctid) into v_locked from (
    select d.ctid from dead d where d.message_id = any(p_ids) and d.buried_at + 0 < v_before
    for update skip locked
  ) s;
  with redriven as (
    insert into message (id, channel_id, channel_name, dequeue_at, created_at, max_attempts, key, content, state, error,
      headers)
    select d.message_id, channel_id(s.salt, d.channel),
      case when (select c.name from channel c where c.id = channel_id(s.salt, d.channel)) = d.channel then null
        else d.channel end,
      v_now, d.created_at, d.max_attempts, d.key, d.content, d.state, d.error, d.headers
    from setting s, dead d
    where s.is_only and d.ctid = any(v_locked)
    order by d.key is null, channel_id(s.salt, d.channel), d.key, d.message_id
    on conflict (channel_id, key) where key is not null do nothing
    returning id, channel_id, dequeue_at
  ),
  woken as (
    insert into wake (channel_id, channel_name, at, message_id, to_at, to_id, waiting)
    select m.channel_id, min(d.channel), min(m.dequeue_at), min(m.id), max(m.dequeue_at), max(m.id), count(*)
    from redriven m
    cross join lateral (select d.channel from dead d where d.message_id = m.id offset 0) d
    group by m.channel_id
  )
  select array_agg(m.id) into v_redriven from redriven m;
  delete from dead d where d.message_id = any(v_redriven);
  perform sleepers_notify();
  return query
  select u.id, case
    when u.id = any(v_redriven) then 'redriven'
    when d.message_id is null then 'unknown'
    when d.tid = any(v_locked) then 'duplicate'
    else 'busy'
  end
  from unnest(p_ids) with ordinality u(id, ordinal)
  left join lateral (
    select d.message_id, d.ctid as tid from dead d where d.message_id = u.id and d.buried_at + 0 < v_before offset 0
  ) d on true
  order by u.ordinal;
end
$$;
