-- message_publish: create all messages that were staged for a publication in one transaction, in each channel in the
-- order of the parts and, within a part, of the ordinals.
-- p_parts and p_counts list the parts and how many messages each must have. It is an error, SQLSTATE LQ005, if a part
-- is incomplete (staged rows do not survive a crash of the server) or is discarded meanwhile.
-- A publication is published once: repeating the call does nothing. Each role has publications of its own. max_size
-- does not apply to bulk loads.
-- Returns 'published' or 'already_published', how many messages were created, and how many were duplicates by key.
-- Locks:  the publication: waits for another transaction that publishes the same one; keys as in message_create.
-- Writes: message, publication, wake (insert; one per channel, in the bulk lane), stage (delete).
create or replace function message_publish(
  p_publication text, p_parts uuid[], p_counts bigint[],
  out outcome text, out created bigint, out duplicates bigint
)
language plpgsql security definer
set search_path from current
set synchronize_seqscans = off
set max_parallel_workers_per_gather = 0
set enable_sort = off
set work_mem = '256MB'
set jit = off
as $$
#variable_conflict use_column
declare
  v_role constant text := caller_role();
  v_now constant bigint := floor(extract(epoch from now()) * 1000)::bigint;
  v_salt bytea;
  v_max_bytes bigint;
  v_first_id bigint;
  v_last_id bigint;
  v_missing text;
  v_staged bigint;
  v_deleted bigint;
  v_min_ordinal bigint;
  v_max_ordinal bigint;
  v_has_keys boolean;
  v_bad text;
  -- One element per part, sorted by part; v_part_ordinals are the positions in p_parts.
  v_parts uuid[];
  v_part_ordinals bigint[];
  -- One element per channel.
  v_channels text[];
  v_channel_ids bigint[];
  v_counts bigint[];
  v_mins bigint[];
  v_maxs bigint[];
  -- One element per channel in which messages were created.
  v_created_channels text[];
  v_created_counts bigint[];
  -- The rows of one ordinal are inserted channel by channel, which touches few pages of the index by channel, and keeps
  -- the first messages of all channels on few pages of the table. One sort key, because sorting by three columns takes
  -- several times as long.
  v_order text := '($7[width_bucket(t.part, $3)] * ($6 + 1) + t.ordinal) * cardinality($4) + n.rank';
  -- The coalesce keeps the planner from estimating that only a handful of rows match.
  c_insert constant text := $sql$
    insert into message (id, channel_id, channel_name, dequeue_at, created_at, max_attempts, key, content,
      headers)
    select l.id, l.channel_id, l.channel_name, coalesce(l.dequeue_at, $1 + l.delay_ms, $1), $1, l.max_attempts, l.key,
      l.content, l.headers
    from (
      -- Assign ids and unnest after the sort.
      select nextval('message_id_seq') as id, n.id as channel_id, n.name as channel_name, unnest(t.contents) as content,
        unnest(t.dequeue_ats) as dequeue_at, unnest(t.delays_ms) as delay_ms, unnest(t.keys) as key,
        unnest(t.max_attempts) as max_attempts, unnest(t.headers) as headers
      from stage t
      join (
        select u.channel, u.id, u.rank, case when c.name = u.channel then null else u.channel end as name
        from unnest($4, $5) with ordinality u(channel, id, rank)
        left join channel c on c.id = u.id
      ) n on n.channel = t.channel
      where coalesce(t.role = $8 and t.publication = $2 and t.part = any($3), false)
      order by %s
    ) l
  $sql$;
begin
  if p_publication is null or length(p_publication) not between 1 and 255 then
    perform reject('publication', p_publication, '1 to 255 characters');
  elsif p_parts is null or p_counts is null then
    perform reject(case when p_parts is null then 'parts' else 'counts' end, null, 'an array');
  elsif cardinality(p_parts) = 0 then
    perform reject('parts', 'none', 'at least one part');
  elsif cardinality(p_parts) <> cardinality(p_counts) then
    perform reject('counts', cardinality(p_counts) || ' elements', format('an array of %s elements, one per part',
      cardinality(p_parts)));
  elsif (select count(distinct p) from unnest(p_parts) p) <> cardinality(p_parts) then
    perform reject('parts', 'repeated or null parts', 'distinct and not null');
  end if;
  insert into publication (role, name, created, duplicates) values (v_role, p_publication, 0, 0) on conflict do nothing;
  if not found then
    select 'already_published', p.created, p.duplicates into outcome, created, duplicates
    from publication p where p.role = v_role and p.name = p_publication;
    delete from stage t where t.role = v_role and t.publication = p_publication and t.part = any(p_parts);
    return;
  end if;

  -- Count and check. Each channel name is checked once. Rows without optional arrays, as most loads have, are not
  -- unnested.
  select s.salt, s.max_content_bytes into v_salt, v_max_bytes from setting s where s.is_only;
  with groups as materialized (
    select t.part, t.channel, sum(cardinality(t.contents)) as count, min(t.ordinal) as min_ordinal,
      max(t.ordinal) as max_ordinal, false as has_keys, v_now as min_at, v_now as max_at, null as bad
    from stage t
    where coalesce(t.role = v_role and t.publication = p_publication and t.part = any(p_parts), false)
      and num_nonnulls(t.dequeue_ats, t.delays_ms, t.keys, t.max_attempts, t.headers) = 0
    group by t.part, t.channel
    union all
    select t.part, t.channel, count(*), min(t.ordinal), max(t.ordinal), bool_or(u.key is not null),
      min(coalesce(u.dequeue_at, v_now + d.delay_ms, v_now)), max(coalesce(u.dequeue_at, v_now + d.delay_ms, v_now)),
      min(case
        when u.dequeue_at not between -9000000000000000 and 9000000000000000 then
          'dequeue_at must be between -9000000000000000 and 9000000000000000 (milliseconds), got ' || u.dequeue_at
        when u.delay_ms not between 0 and 3155760000000 or u.dequeue_at is not null and u.delay_ms is not null then
          'delay_ms must be between 0 and 3155760000000, and absent if dequeue_at is given, got ' || u.delay_ms
        when length(u.key) not between 1 and 255 then
          'key must be 1 to 255 characters, got ' || quote_literal(left(u.key, 100))
        when u.max_attempts < 1 then 'max_attempts must be at least 1, got ' || u.max_attempts
        when u.headers is not null then headers_error(u.headers)
      end)
    from stage t
    cross join unnest(t.dequeue_ats, t.delays_ms, t.keys, t.max_attempts, t.headers)
      u(dequeue_at, delay_ms, key, max_attempts, headers)
    cross join lateral (select case when u.delay_ms between 0 and 3155760000000 then u.delay_ms end as delay_ms) d
    where coalesce(t.role = v_role and t.publication = p_publication and t.part = any(p_parts), false)
      and num_nonnulls(t.dequeue_ats, t.delays_ms, t.keys, t.max_attempts, t.headers) > 0
    group by t.part, t.channel
  ),
  parts as (
    select u.part, u.count, coalesce(sum(g.count), 0) as staged
    from unnest(p_parts, p_counts) u(part, count)
    left join groups g on g.part = u.part
    group by u.part, u.count
  ),
  channels as (
    select g.channel, channel_id(v_salt, g.channel) as id, sum(g.count) as count, min(g.min_at) as min_at,
      max(g.max_at) as max_at, min(g.min_ordinal) as min_ordinal, max(g.max_ordinal) as max_ordinal,
      bool_or(g.has_keys) as has_keys, coalesce(min(g.bad), case
        when length(g.channel) not between 1 and 255 or g.channel ~ '[[:cntrl:]]' then
          'channel must be 1 to 255 characters without control characters, got ' || quote_literal(left(g.channel, 100))
      end) as bad
    from groups g
    group by g.channel
    order by id
  )
  select array_agg(c.channel), array_agg(c.id), array_agg(c.count), array_agg(c.min_at), array_agg(c.max_at),
    coalesce(sum(c.count), 0), min(c.min_ordinal), max(c.max_ordinal), coalesce(bool_or(c.has_keys), false),
    min(c.bad), (
      select string_agg(format('part %s has %s messages of %s', p.part, p.staged, p.count), ', ')
      from parts p where p.count is distinct from p.staged
    )
  into v_channels, v_channel_ids, v_counts, v_mins, v_maxs, v_staged, v_min_ordinal, v_max_ordinal,
    v_has_keys, v_bad, v_missing
  from channels c;
  -- A small array has no large element, unless it is compressed, as when it was copied from another table.
  v_bad := coalesce(v_bad, (
    select format('content must be at most %s bytes, got %s', v_max_bytes, max(octet_length(u.content)))
    from stage t
    cross join unnest(t.contents) u(content)
    where coalesce(t.role = v_role and t.publication = p_publication and t.part = any(p_parts), false)
      and (pg_column_size(t.contents) > v_max_bytes or pg_column_compression(t.contents) is not null)
    having max(octet_length(u.content)) > v_max_bytes
  ));
  if v_missing is not null then
    raise exception using
      errcode = 'LQ005',
      message = format('publication %L is incomplete: %s', p_publication, v_missing),
      hint = 'Stage all rows again: staged rows do not survive a crash of the server.';
  elsif v_bad is not null then
    raise exception using
      errcode = 'LQ001',
      message = v_bad,
      hint = 'Nothing was created. Discard the rows with stage_discard() and stage correct ones.';
  end if;

  -- Ordinals may be any numbers; if the single sort key could overflow, sort by three columns.
  if v_min_ordinal < 0
    or (cardinality(p_parts) + 1) * (v_max_ordinal::numeric + 1) * (cardinality(v_channels) + 1)
      > 9000000000000000000 then
    v_order := '$7[width_bucket(t.part, $3)], t.ordinal, n.rank';
  end if;
  select array_agg(p.part order by p.part), array_agg(p.ordinal order by p.part) into v_parts, v_part_ordinals
  from unnest(p_parts) with ordinality p(part, ordinal);
  v_first_id := nextval('message_id_seq');
  if v_has_keys then
    -- Insert in the order of the keys, so that two loads cannot deadlock. Count what was created by name and not by id,
    -- because two names may share an id.
    execute 'with created as (' || format(c_insert, v_order) || '
        order by l.key is null, l.channel_id, l.key, l.id
        on conflict (channel_id, key) where key is not null do nothing
        returning channel_id, channel_name
      )
      select array_agg(coalesce(m.channel_name, c.name)), array_agg(m.count)
      from (select m.channel_id, m.channel_name, count(*) as count from created m
        group by m.channel_id, m.channel_name) m
      left join channel c on c.id = m.channel_id'
    into v_created_channels, v_created_counts
    using v_now, p_publication, v_parts, v_channels, v_channel_ids, v_max_ordinal, v_part_ordinals, v_role;
  else
    execute format(c_insert, v_order)
    using v_now, p_publication, v_parts, v_channels, v_channel_ids, v_max_ordinal, v_part_ordinals, v_role;
    v_created_channels := v_channels;
    v_created_counts := v_counts;
  end if;
  v_last_id := nextval('message_id_seq');
  insert into wake (lane, channel_id, channel_name, at, message_id, to_at, to_id, waiting)
  select 1, u.id, u.channel, u.min_at, v_first_id, u.max_at, v_last_id, m.count
  from unnest(v_channel_ids, v_channels, v_mins, v_maxs) u(id, channel, min_at, max_at)
  join unnest(v_created_channels, v_created_counts) m(channel, count) on m.channel = u.channel;
  created := coalesce((select sum(c) from unnest(v_created_counts) c), 0);
  duplicates := v_staged - created;
  -- Each statement has read the stage in its own snapshot, so a transaction that changed these parts meanwhile, as
  -- stage_discard does, may have changed what was inserted.
  with deleted as (
    delete from stage t where t.role = v_role and t.publication = p_publication
    returning case when t.part = any(v_parts) then cardinality(t.contents) end as messages
  )
  select coalesce(sum(d.messages), 0) into v_deleted from deleted d;
  if v_deleted <> v_staged then
    raise exception using
      errcode = 'LQ005',
      message = format('publication %L was changed while it was being published: %s of %s messages are still staged',
        p_publication, v_deleted, v_staged),
      hint = 'Stage all rows again, and do not discard parts while they are being published.';
  end if;
  update publication p set created = message_publish.created, duplicates = message_publish.duplicates
  where p.role = v_role and p.name = p_publication;
  perform sleepers_notify();
  outcome := 'published';
end
$$;
