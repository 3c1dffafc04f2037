-- message_rewind: the clock stepped back, and messages that had been created for at once seem to be scheduled for later.
-- Those whose time is not after their creation were never meant to wait: give them a time that has come, in the same
-- order. All others wait for their time by the new clock. Part of turn_sweep.
-- Looked for among the next ten messages of channels that seem to have them more than a second from now: a thousand whose
-- turn is then, a thousand that woke, and those of leases from the future. Only where one is found, further on. What is
-- really scheduled may hide others there; so if there are none, then among the next 2000 such messages of the next 1000
-- channels by id, from where this session's last call left off.
-- Returns whether there were any, and the cursor for the next call: channel_id, dequeue_at and id of the last one.
-- Locks:  such messages, 10000 at the most, skipping locked ones.
-- Writes: message, wake (insert).
create or replace function message_rewind(p_now bigint, p_cursor bigint[], out is_rewound boolean, out cursor bigint[])
language plpgsql
as $$
declare
  c_now constant bigint := p_now / 1000;
  c_most constant integer := 2000;
  v_channel_id bigint := coalesce(p_cursor[1], ((random() - 0.5) * 18000000000000000000)::bigint);
  v_channel_ids bigint[];
  v_found tid[];
  v_messages tid[];
  v_at bigint;
  v_count integer;
  v_channels bigint[];
  v_ats bigint[];
  v_ids bigint[];
begin
  cursor := p_cursor;
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
  if v_channel_ids <> '{}' then
    v_found := array(
      select n.ctid
      from unnest(v_channel_ids) c(id)
      cross join lateral (
        select m.ctid, m.id, m.dequeue_at, m.created_at from message m
        where m.channel_id = c.id and m.dequeue_at > c_now
        order by m.channel_id, m.dequeue_at, m.id + 0 limit 10000
      ) n
      where n.dequeue_at <= n.created_at and (select true from lease l where l.message_id = n.id) is null
      limit 10000
    );
  else
    -- In a circle, so that any place will do to begin at: sessions that look only once reach all between them.
    v_channel_ids := array(
      (select c.id from channel c where c.id >= v_channel_id order by c.id limit 1000)
      union all
      (select c.id from channel c where c.id < v_channel_id order by c.id limit 1000)
      limit 1000
    );
    select count(*), max(n.dequeue_at) filter (where n.dequeue_at <= n.created_at),
      array_agg(n.ctid) filter (where n.dequeue_at <= n.created_at), array_agg(n.channel_id), array_agg(n.dequeue_at),
      array_agg(n.id)
    into v_count, v_at, v_found, v_channels, v_ats, v_ids
    from (
      select m.ctid, m.id, m.channel_id, m.dequeue_at, m.created_at
      from unnest(v_channel_ids) with ordinality c(id, place)
      cross join lateral (
        select m.ctid, m.id, m.channel_id, m.dequeue_at, m.created_at from message m
        where m.channel_id = c.id and (m.dequeue_at, m.id + 0) > (
          case when c.place = 1 and c.id = v_channel_id and p_cursor[2] > c_now then p_cursor[2] else c_now end,
          case when c.place = 1 and c.id = v_channel_id and p_cursor[2] > c_now then p_cursor[3] else 9223372036854775807 end)
        order by m.channel_id, m.dequeue_at, m.id + 0 limit c_most
      ) m
      limit c_most
    ) n;
    cursor := case when v_count = c_most then array[v_channels[v_count], v_ats[v_count], v_ids[v_count]]
      -- The one after the last; an id at the end of its range is not likely, and begins anew.
      else array[nullif(v_channel_ids[cardinality(v_channel_ids)], 9223372036854775807) + 1, null, null] end;
    is_rewound := coalesce(v_at > c_now + 1000, false);
    if not is_rewound then
      return;
    end if;
    v_found := array(
      select m.ctid from message m
      where m.ctid = any(v_found) and (select true from lease l where l.message_id = m.id) is null
    );
  end if;
  v_messages := array(
    -- Asked again: what was there may have gone, and another message have taken its place.
    select m.ctid from message m
    where m.ctid = any(v_found) and m.dequeue_at <= m.created_at and m.dequeue_at > c_now
    for update skip locked
  );
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
  is_rewound := v_messages <> '{}';
end
$$;
