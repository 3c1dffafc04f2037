-- message_rewind: the clock stepped back, and messages that had been created for at once seem to be scheduled for later.
-- Those whose time is not after their creation were never meant to wait: give them a time that has come, in the same
-- order. All others wait for their time by the new clock. Part of turn_sweep.
-- Looked for among the next ten messages of channels that seem to have them more than a second from now: a thousand whose
-- turn is then, a thousand that woke, and those of leases from the future. Only where one is found, further on.
-- Returns whether there were any.
-- Locks:  such messages, 10000 at the most, skipping locked ones.
-- Writes: message, wake (insert).
create or replace function message_rewind(p_now bigint) returns boolean
language plpgsql
as $$
declare
  c_now constant bigint := p_now / 1000;
  v_channel_ids bigint[];
  v_messages tid[];
begin
  v_channel_ids := array(
    select a.channel_id
    from (
      (select t.channel_id from turn t where t.next_at > p_now + 1000000 order by t.next_at limit 1000)
      union
      (select w.channel_id from wake w where w.lane < 2 order by w.lane, w.id limit 1000)
      union
      -- Whose turn is parked, because all that it may have is leased.
      select l.channel_id
      from (select l.channel_id, l.leased_at from lease l where l.unlock_at > p_now order by l.unlock_at desc limit 1000) l
      where l.leased_at > p_now + 1000000
    ) a
    where (
      select bool_or(n.dequeue_at <= n.created_at)
      from (
        select m.dequeue_at, m.created_at from message m
        where m.channel_id = a.channel_id and m.dequeue_at > c_now + 1000
        order by m.channel_id, m.dequeue_at, m.id + 0 limit 10
      ) n
    )
  );
  if v_channel_ids = '{}' then
    return false;
  end if;
  select array_agg(s.ctid) into v_messages from (
    select m.ctid from message m
    where m.ctid = any(array(
      select n.ctid
      from unnest(v_channel_ids) c(id)
      cross join lateral (
        select m.ctid, m.id, m.dequeue_at, m.created_at from message m
        where m.channel_id = c.id and m.dequeue_at > c_now
        order by m.channel_id, m.dequeue_at, m.id + 0 limit 10000
      ) n
      where n.dequeue_at <= n.created_at and (select true from lease l where l.message_id = n.id) is null
      limit 10000
    ))
    for update skip locked
  ) s;
  with placed as (
    select o.ctid,
      -- Now; a millisecond earlier for each later place where ids go down, so that (dequeue_at, id) sorts them as before.
      c_now - count(*) filter (where o.next_id < o.id) over (partition by o.channel_id order by o.dequeue_at desc, o.id desc)
        as dequeue_at
    from (
      select m.ctid, m.id, m.channel_id, m.dequeue_at,
        lead(m.id) over (partition by m.channel_id order by m.dequeue_at, m.id) as next_id
      from message m
      where m.ctid = any(v_messages)
    ) o
  ),
  moved as (
    update message m set dequeue_at = p.dequeue_at from placed p where m.ctid = p.ctid
    returning m.id, m.channel_id, m.dequeue_at
  )
  insert into wake (channel_id, at, message_id, to_at, to_id)
  select m.channel_id, min(m.dequeue_at), min(m.id), max(m.dequeue_at), max(m.id) from moved m group by m.channel_id;
  return v_messages is not null;
end
$$;
