-- dead_redrive: put dead letters back into their channels, at once, with their attempts forgotten and their id kept.
-- Returns per message, in the order given: 'redriven', 'duplicate' (its key is live again: it stays dead), 'busy'
-- (locked by another transaction: ask again), or 'unknown'.
-- Locks:  the dead letters, skipping locked ones; keys as in message_create.
-- Writes: dead (delete), message, wake (insert).
create or replace function dead_redrive(p_ids bigint[]) returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_held tid[];
  v_made bigint[];
begin
  if p_ids is null then
    perform reject('ids', null, 'an array');
  end if;
  perform require_read_committed('dead_redrive');
  select array_agg(s.ctid) into v_held from (
    select d.ctid from dead d where d.message_id = any(p_ids) for update skip locked
  ) s;
  with made as (
    insert into message (id, channel_id, channel_name, dequeue_at, created_at, max_attempts, key, content, state, error)
    select d.message_id, channel_id(s.salt, d.channel),
      case when (select c.name from channel c where c.id = channel_id(s.salt, d.channel)) = d.channel then null
        else d.channel end,
      v_now, d.created_at, d.max_attempts, d.key, d.content, d.state, d.error
    from setting s, dead d
    where s.is_only and d.ctid = any(v_held)
    order by d.key is null, channel_id(s.salt, d.channel), d.key, d.message_id
    on conflict (channel_id, key) where key is not null do nothing
    returning id, channel_id, dequeue_at
  ),
  woken as (
    insert into wake (channel_id, channel_name, at, message_id, to_at, to_id, waiting)
    select m.channel_id, min(d.channel), min(m.dequeue_at), min(m.id), max(m.dequeue_at), max(m.id), count(*)
    from made m
    cross join lateral (select d.channel from dead d where d.message_id = m.id offset 0) d
    group by m.channel_id
  )
  select array_agg(m.id) into v_made from made m;
  delete from dead d where d.message_id = any(v_made);
  perform sleepers_notify();
  return query
  select u.id, case
    when u.id = any(v_made) then 'redriven'
    when d.message_id is null then 'unknown'
    when d.tid = any(v_held) then 'duplicate'
    else 'busy'
  end
  from unnest(p_ids) with ordinality u(id, ordinal)
  left join lateral (select d.message_id, d.ctid as tid from dead d where d.message_id = u.id offset 0) d on true
  order by u.ordinal;
end
$$;
