-- message_publish: create all rows that were staged for a publication, at once, in the order of the parts and ordinals.
-- p_parts and p_counts say which parts, and how many rows each must have: a part that is incomplete (staging does not
-- survive a crash of the server) is an error, SQLSTATE LQ005. A publication is published once: repeating it does nothing.
-- max_size does not apply to bulk loads.
-- Returns 'published' or 'already_published', how many messages were created, and how many had a live key.
-- Locks:  the publication's name: waits for another transaction that publishes the same; keys as in message_create.
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
  v_now constant bigint := floor(extract(epoch from now()) * 1000)::bigint;
  v_salt bytea;
  v_max_bytes bigint;
  v_staged bigint;
  v_missing text;
  v_bad text;
  v_has_keys boolean;
begin
  if p_publication is null or length(p_publication) not between 1 and 255 then
    perform reject('publication', p_publication, '1 to 255 characters');
  elsif p_parts is null or p_counts is null then
    perform reject(case when p_parts is null then 'parts' else 'counts' end, null, 'an array');
  elsif cardinality(p_parts) <> cardinality(p_counts) then
    perform reject('counts', cardinality(p_counts) || ' elements', format('as many as parts (%s)', cardinality(p_parts)));
  elsif (select count(distinct p) from unnest(p_parts) p) <> cardinality(p_parts) then
    perform reject('parts', 'repeated or null parts', 'without repetition');
  end if;
  insert into publication (name, created, duplicates) values (p_publication, 0, 0) on conflict do nothing;
  if not found then
    select 'already_published', p.created, p.duplicates into outcome, created, duplicates
    from publication p where p.name = p_publication;
    delete from stage t where t.publication = p_publication and t.part = any(p_parts);
    return;
  end if;

  select s.salt, s.max_content_bytes into v_salt, v_max_bytes from setting s where s.is_only;
  select string_agg(format('part %s has %s rows of %s', u.part, coalesce(g.n, 0), u.count), ', ') filter
      (where u.count is distinct from coalesce(g.n, 0)), coalesce(sum(g.n), 0), coalesce(bool_or(g.has_keys), false),
    min(g.bad)
  into v_missing, v_staged, v_has_keys, v_bad
  from unnest(p_parts, p_counts) u(part, count)
  left join (
    select t.part, count(*) as n, bool_or(t.key is not null) as has_keys, min(case
      when octet_length(t.content) > v_max_bytes then format('content must be at most %s bytes, got %s', v_max_bytes,
        octet_length(t.content))
      when length(t.channel) not between 1 and 255 or t.channel ~ '[[:cntrl:]]' then
        'channel must be 1 to 255 characters without control characters, got ' || quote_literal(left(t.channel, 100))
      when t.dequeue_at not between -9000000000000000 and 9000000000000000 then 'dequeue_at is out of range: ' || t.dequeue_at
      when t.delay_ms not between 0 and 3155760000000 or t.dequeue_at is not null and t.delay_ms is not null then
        'delay_ms must be between 0 and 3155760000000, and absent if dequeue_at is given, got ' || t.delay_ms
      when length(t.key) not between 1 and 255 then 'key must be 1 to 255 characters'
      when t.max_attempts < 1 then 'max_attempts must be at least 1, got ' || t.max_attempts
    end) as bad
    from stage t where t.publication = p_publication group by t.part
  ) g on g.part = u.part;
  if v_missing is not null then
    raise exception using
      errcode = 'LQ005',
      message = format('publication %L is incomplete: %s', p_publication, v_missing),
      hint = 'Stage the rows again: staged rows do not survive a crash of the server.';
  elsif v_bad is not null then
    raise exception using errcode = 'LQ001', message = v_bad, hint = 'Nothing of this publication was created.';
  end if;

  -- Ids in the order of the load; inserted in the order of the keys, if there are any, so that two loads cannot deadlock.
  execute format($sql$
    with made as (
      insert into message (id, channel_id, channel_name, dequeue_at, created_at, max_attempts, key, content)
      select l.id, l.channel_id, case when c.name = l.channel then null else l.channel end,
        coalesce(l.dequeue_at, $4 + l.delay_ms, $4), $4, l.max_attempts, l.key, l.content
      from (
        select nextval('message_id_seq') as id, channel_id($1, s.channel) as channel_id, s.*
        from (
          select t.* from stage t
          join unnest($3) with ordinality p(part, place) on p.part = t.part
          where t.publication = $2
          order by p.place, t.ordinal
        ) s
      ) l
      left join channel c on c.id = l.channel_id
      %s
      returning id, channel_id, channel_name, dequeue_at
    ),
    woken as (
      insert into wake (lane, channel_id, channel_name, at, message_id, to_at, to_id, waiting)
      select 1, m.channel_id, coalesce(min(m.channel_name), (select c.name from channel c where c.id = m.channel_id)),
        min(m.dequeue_at), min(m.id), max(m.dequeue_at), max(m.id), count(*)
      from made m
      group by m.channel_id
      returning waiting
    )
    select coalesce(sum(w.waiting), 0) from woken w
  $sql$, case when v_has_keys then 'order by l.key is null, l.channel_id, l.key, l.id
      on conflict (channel_id, key) where key is not null do nothing' end)
  into created using v_salt, p_publication, p_parts, v_now;
  duplicates := v_staged - created;
  delete from stage t where t.publication = p_publication;
  update publication p set created = message_publish.created, duplicates = message_publish.duplicates
  where p.name = p_publication;
  perform sleepers_notify();
  outcome := 'published';
end
$$;
