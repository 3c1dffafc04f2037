-- message_page: a page of live messages, newest first: those of all channels by id, those of one channel by the time
-- at which they are or were due. p_status: only 'waiting', 'scheduled' or 'leased' ones. p_prefix, without p_channel:
-- only those of channels whose names begin with it.
-- p_before_id, p_before_at: next_id and next_at of the page before; null for the first one.
-- Returns the ids of at most p_limit messages (see message_show), and where the next page begins; null: there is
-- none. It looks at no more than 1,000 messages that do not match, so a page may hold fewer than p_limit and still
-- not be the last.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_page(
  p_channel text default null, p_status text default null, p_before_id bigint default null,
  p_before_at bigint default null, p_limit integer default 100, p_prefix text default null,
  out ids bigint[], out next_id bigint, out next_at bigint
)
language plpgsql stable security definer
set search_path from current
as $$
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_channel_id bigint;
  v_message record;
  v_seen integer := 0;
begin
  perform require_batch(p_limit);
  if p_status not in ('waiting', 'scheduled', 'leased') then
    perform reject('status', p_status, 'waiting, scheduled, leased or null');
  end if;
  if p_channel is not null and p_prefix is not null then
    perform reject('prefix', quote_literal(p_prefix), 'null if a channel is given');
  end if;
  if p_channel is not null then
    perform require_channel(p_channel);
    if (p_before_id is null) <> (p_before_at is null) then
      perform reject('before_at', p_before_at::text, 'given together with before_id');
    end if;
    v_channel_id := (select channel_id(s.salt, p_channel) from setting s where s.is_only);
  end if;
  ids := '{}';
  for v_message in
    select m.id, m.dequeue_at, case when l.message_id is not null then 'leased'
      when m.dequeue_at > v_now and m.dequeue_at > m.created_at then 'scheduled' else 'waiting' end as status,
      p_prefix is null or starts_with(coalesce(m.channel_name, c.name, ''), p_prefix) as is_in_channel
    from (
      (
        select m.id, m.dequeue_at, m.created_at, m.channel_id, m.channel_name from message m
        where v_channel_id is null and m.id < coalesce(p_before_id, 9223372036854775807)
        order by m.id desc limit p_limit + 1001
      )
      union all
      (
        select m.id, m.dequeue_at, m.created_at, m.channel_id, m.channel_name from message m
        where m.channel_id = v_channel_id
          and (m.dequeue_at, m.id + 0)
            < (coalesce(p_before_at, 9223372036854775807), coalesce(p_before_id, 9223372036854775807))
        order by m.channel_id desc, m.dequeue_at desc, m.id + 0 desc limit p_limit + 1001
      )
    ) m
    left join lateral (select l.message_id from lease l where l.message_id = m.id offset 0) l on true
    left join lateral (
      select c.name from channel c where p_prefix is not null and c.id = m.channel_id offset 0
    ) c on true
  loop
    if cardinality(ids) = p_limit or v_seen - cardinality(ids) = 1000 then
      return;  -- next_id and next_at are those of the message before
    end if;
    v_seen := v_seen + 1;
    if v_message.is_in_channel and (p_status is null or v_message.status = p_status) then
      ids := ids || v_message.id;
    end if;
    next_id := v_message.id;
    next_at := v_message.dequeue_at;
  end loop;
  next_id := null;
  next_at := null;
end
$$;
