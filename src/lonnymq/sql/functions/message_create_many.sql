-- message_create_many: create many messages, in the order given. Each optional array is null or as long as p_channels;
-- its elements may be null.
-- Returns per message, in the order given, as message_create.
-- Locks:  as message_create; keys are inserted in sorted order, so that two calls cannot deadlock.
-- Writes: message, wake (insert; one per channel).
create or replace function message_create_many(
  p_channels text[], p_contents bytea[], p_dequeue_ats bigint[] default null, p_delays_ms bigint[] default null,
  p_keys text[] default null, p_max_attempts integer[] default null, p_headers jsonb[] default null
) returns table (ordinal integer, outcome text, message_id bigint)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_now constant bigint := floor(extract(epoch from now()) * 1000)::bigint;
  v_clock constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_count constant integer := cardinality(p_channels);
  v_salt bytea;
  v_max_bytes bigint;
  v_max_size bigint;  -- of the default policy
  v_channel_ids bigint[];
  v_names text[];
  v_max_sizes bigint[];
  v_ids bigint[];
  v_created bigint;
begin
  if p_channels is null or p_contents is null then
    perform reject(case when p_channels is null then 'channels' else 'contents' end, null, 'an array');
  elsif v_count > 100000 then
    perform reject('channels', v_count || ' elements', 'at most 100000 elements');
  end if;
  perform require_length(a.name, a.length, v_count) from (values
    ('contents', cardinality(p_contents)), ('dequeue_ats', cardinality(p_dequeue_ats)),
    ('delays_ms', cardinality(p_delays_ms)), ('keys', cardinality(p_keys)),
    ('max_attempts', cardinality(p_max_attempts)), ('headers', cardinality(p_headers))
  ) a(name, length) where a.length <> v_count;
  select s.salt, s.max_content_bytes, s.max_size into v_salt, v_max_bytes, v_max_size from setting s where s.is_only;
  perform require_channel(u.channel) from unnest(p_channels) u(channel)
  where u.channel is null or length(u.channel) not between 1 and 255 or u.channel ~ '[[:cntrl:]]' limit 1;
  perform reject('contents', coalesce(octet_length(u.content) || ' bytes', null),
    format('bytes, at most %s', v_max_bytes))
  from unnest(p_contents) u(content)
  where u.content is null or octet_length(u.content) > v_max_bytes limit 1;
  if p_dequeue_ats is not null then
    perform reject('dequeue_ats', u.at::text, 'between -9000000000000000 and 9000000000000000 (milliseconds)')
    from unnest(p_dequeue_ats) u(at) where u.at not between -9000000000000000 and 9000000000000000 limit 1;
  end if;
  if p_delays_ms is not null then
    perform reject('delays_ms', u.delay::text,
      'between 0 and 3155760000000 (100 years), and absent if dequeue_at is given')
    from unnest(p_delays_ms, p_dequeue_ats) u(delay, at)
    where u.delay not between 0 and 3155760000000 or u.delay is not null and u.at is not null limit 1;
  end if;
  if p_keys is not null then
    perform reject('keys', u.key, '1 to 255 characters') from unnest(p_keys) u(key)
    where length(u.key) not between 1 and 255 limit 1;
  end if;
  if p_max_attempts is not null then
    perform reject('max_attempts', u.max::text, 'at least 1')
    from unnest(p_max_attempts) u(max) where u.max < 1 limit 1;
  end if;
  if p_headers is not null then
    perform require_headers(u.headers) from unnest(p_headers) u(headers) where u.headers is not null;
  end if;

  select array_agg(u.id order by u.ordinal), array_agg(case when c.name = u.channel then null else u.channel end
    order by u.ordinal), array_agg(nullif(coalesce(c.max_size, v_max_size), -1) order by u.ordinal)
  into v_channel_ids, v_names, v_max_sizes
  from (
    select u.ordinal, u.channel, channel_id(v_salt, u.channel) as id
    from unnest(p_channels) with ordinality u(channel, ordinal)
    offset 0
  ) u
  left join lateral (select c.name, c.max_size from channel c where c.id = u.id offset 0) c on true;

  -- Assign ids in the order given, and none to messages that a full channel drops.
  if (select bool_or(m is not null) from unnest(v_max_sizes) m) then
    select array_agg(case when n.number <= n.max_number then nextval('message_id_seq') end order by n.ordinal)
    into v_ids
    from (
      -- channel_waiting is called once per channel, because it reads every wake that no dequeue has folded yet.
      select u.ordinal, u.number,
        coalesce(max(case when u.number = 1 then u.max_size - greatest(channel_waiting(u.id), 0) end)
          over (partition by u.id), 9223372036854775807) as max_number
      from (
        select u.*, row_number() over (partition by u.id order by u.ordinal) as number
        from unnest(v_channel_ids, v_max_sizes) with ordinality u(id, max_size, ordinal)
      ) u
      order by u.ordinal
    ) n;
  else
    v_ids := array(select nextval('message_id_seq') from generate_series(1, v_count));
  end if;

  with created as (
    insert into message (id, channel_id, channel_name, dequeue_at, created_at, max_attempts, key, content,
      headers)
    select u.id, u.channel_id, u.name, coalesce(u.at, v_clock + u.delay, v_now), v_now, u.max, u.key, u.content,
      u.headers
    from unnest(v_ids, v_channel_ids, v_names, p_dequeue_ats, p_delays_ms, p_max_attempts, p_keys, p_contents,
        p_headers)
      with ordinality u(id, channel_id, name, at, delay, max, key, content, headers, ordinal)
    where u.id is not null
    order by u.key is null, u.channel_id, u.key, u.ordinal
    on conflict (channel_id, key) where key is not null do nothing
    returning id, channel_id, channel_name, dequeue_at
  ),
  woken as (
    insert into wake (channel_id, channel_name, at, message_id, to_at, to_id, waiting)
    -- array_position is only for a channel that has just been deleted: for every channel it would double the time.
    select m.channel_id, coalesce((select c.name from channel c where c.id = m.channel_id), min(m.channel_name),
      (array(select unnest(p_channels)))[array_position(v_channel_ids, m.channel_id)]), min(m.dequeue_at), min(m.id),
      max(m.dequeue_at), max(m.id), count(*)
    from created m
    group by m.channel_id
  )
  select count(*) into v_created from created m;
  perform sleepers_notify();

  if v_created = v_count then
    return query
    select u.ordinal::integer, 'created'::text, u.id from unnest(v_ids) with ordinality u(id, ordinal);
  else
    return query
    select u.ordinal::integer,
      case when n.id is not null then 'created' when u.id is null and f.id is null then 'dropped' else 'duplicate' end,
      coalesce(n.id, f.id)
    from unnest(v_ids, v_channel_ids, p_keys) with ordinality u(id, channel_id, key, ordinal)
    left join lateral (select m.id from message m where m.id = u.id offset 0) n on true
    left join lateral (
      select m.id from message m where m.channel_id = u.channel_id and m.key = u.key and u.key is not null
    ) f on true
    order by u.ordinal;
  end if;
end
$$;
