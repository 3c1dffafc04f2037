-- clock_step_fix_messages: after the clock stepped back, messages that were created for immediate release seem to be
-- scheduled for later. A message whose dequeue_at is not after its created_at was never meant to wait: give it a time
-- that has come, and keep the order. All other messages wait for their time by the new clock. Part of clock_step_fix.
--
-- To stay cheap it first samples: the next ten messages, more than a second from now, of up to 1000 channels whose turn
-- is in the future, 1000 that have wakes, and those of 1000 leases from the future. Only channels where the sample
-- finds such a message are read further. Messages that really are scheduled may hide others from the sample. So if it
-- finds nothing, the next 2000 future messages of the next 1000 channels by id are read, from the cursor of this
-- session's last call on.
-- Returns whether it corrected any, and the cursor for the next call: channel_id, dequeue_at and id of the last
-- message.
-- Reads:  turn, wake, lease, channel, message.
-- Locks:  such messages, at most 10000, skipping locked ones.
-- Writes: message, wake (insert).
create or replace function clock_step_fix_messages(
  p_now bigint, p_cursor bigint[], out has_fixed boolean, out cursor bigint[]
)
language plpgsql
as $$
declare
  c_now_ms constant bigint := p_now / 1000;
  c_max_messages constant integer := 2000;
  v_channel_id bigint := coalesce(p_cursor[1], ((random() - 0.5) * 18000000000000000000)::bigint);
  v_channel_ids bigint[];
  v_found tid[];
  v_messages tid[];
  v_latest_at bigint;  -- the latest dequeue_at found of a message that was not meant to wait
  v_count integer;
  v_seen_channel_ids bigint[];
  v_seen_ats bigint[];
  v_seen_ids bigint[];
begin
  cursor := p_cursor;
  v_channel_ids := array(
    select a.channel_id
    from (
      (select t.channel_id from turn t where t.next_at > p_now + 1000000 order by t.next_at limit 1000)
      union
      (select w.channel_id from wake w where w.lane < 2 order by w.lane, w.id limit 1000)
      union
      -- A turn may be parked, because all messages that its channel's cap allows are leased.
      select l.channel_id
      from (
        select l.channel_id, l.leased_at from lease l where l.unlock_at > p_now order by l.unlock_at desc limit 1000
      ) l
      where l.leased_at > p_now + 1000000
    ) a
    where (
      select bool_or(n.dequeue_at <= n.created_at)
      from (
        select m.dequeue_at, m.created_at from message m
        where m.channel_id = a.channel_id and m.dequeue_at > c_now_ms + 1000
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
        where m.channel_id = c.id and m.dequeue_at > c_now_ms
        order by m.channel_id, m.dequeue_at, m.id + 0 limit 10000
      ) n
      where n.dequeue_at <= n.created_at and (select true from lease l where l.message_id = n.id) is null
      limit 10000
    );
  else
    -- The ids are read in a circle from a random place, so that sessions that look only once cover all of them
    -- together.
    v_channel_ids := array(
      (select c.id from channel c where c.id >= v_channel_id order by c.id limit 1000)
      union all
      (select c.id from channel c where c.id < v_channel_id order by c.id limit 1000)
      limit 1000
    );
    select count(*), max(n.dequeue_at) filter (where n.dequeue_at <= n.created_at),
      array_agg(n.ctid) filter (where n.dequeue_at <= n.created_at), array_agg(n.channel_id), array_agg(n.dequeue_at),
      array_agg(n.id)
    into v_count, v_latest_at, v_found, v_seen_channel_ids, v_seen_ats, v_seen_ids
    from (
      select m.ctid, m.id, m.channel_id, m.dequeue_at, m.created_at
      from unnest(v_channel_ids) with ordinality c(id, ordinal)
      cross join lateral (
        select m.ctid, m.id, m.channel_id, m.dequeue_at, m.created_at from message m
        where m.channel_id = c.id and (m.dequeue_at, m.id + 0) > (
          case when c.ordinal = 1 and c.id = v_channel_id and p_cursor[2] > c_now_ms then p_cursor[2] else c_now_ms end,
          case when c.ordinal = 1 and c.id = v_channel_id and p_cursor[2] > c_now_ms then p_cursor[3]
            else 9223372036854775807 end)
        order by m.channel_id, m.dequeue_at, m.id + 0 limit c_max_messages
      ) m
      limit c_max_messages
    ) n;
    cursor := case when v_count = c_max_messages
      then array[v_seen_channel_ids[v_count], v_seen_ats[v_count], v_seen_ids[v_count]]
      -- The channel after the last one. After the largest possible id, which is unlikely, start at a random place
      -- again.
      else array[nullif(v_channel_ids[cardinality(v_channel_ids)], 9223372036854775807) + 1, null, null] end;
    has_fixed := coalesce(v_latest_at > c_now_ms + 1000, false);
    if not has_fixed then
      return;
    end if;
    v_found := array(
      select m.ctid from message m
      where m.ctid = any(v_found) and (select true from lease l where l.message_id = m.id) is null
    );
  end if;
  v_messages := array(
    -- The conditions are repeated, because a message found may be gone, and its place in the table be another
    -- message's.
    select m.ctid from message m
    where m.ctid = any(v_found) and m.dequeue_at <= m.created_at and m.dequeue_at > c_now_ms
    for update skip locked
  );
  with ordered as (
    select n.ctid,
      -- Now, minus a millisecond for each later position where the id decreases, so that (dequeue_at, id) keeps the
      -- order.
      c_now_ms - count(*) filter (where n.next_id < n.id)
        over (partition by n.channel_id order by n.dequeue_at desc, n.id desc) as dequeue_at
    from (
      select m.ctid, m.id, m.channel_id, m.dequeue_at,
        lead(m.id) over (partition by m.channel_id order by m.dequeue_at, m.id) as next_id
      from message m
      where m.ctid = any(v_messages)
    ) n
  ),
  moved as (
    update message m set dequeue_at = o.dequeue_at from ordered o where m.ctid = o.ctid
    returning m.id, m.channel_id, m.dequeue_at
  )
  insert into wake (channel_id, at, message_id, to_at, to_id)
  select m.channel_id, min(m.dequeue_at), min(m.id), max(m.dequeue_at), max(m.id) from moved m group by m.channel_id;
  has_fixed := v_messages <> '{}';
end
$$;
