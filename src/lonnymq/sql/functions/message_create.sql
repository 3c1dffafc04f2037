-- message_create: create a message in a channel, to be released now, at a time (p_dequeue_at, milliseconds) or after a
-- delay.
-- Returns 'created' and the id; 'duplicate' and the id of the live message that has the same key in this channel; or
-- 'dropped' if the channel is full (max_size).
-- Locks:  nothing that another call waits for, except by key: a call with a key waits for an open transaction that has
--         created or ended a message with the same key.
-- Writes: message, wake (insert).
create or replace function message_create(
  p_channel text, p_content bytea, p_dequeue_at bigint default null, p_delay_ms bigint default null,
  p_key text default null, p_max_attempts integer default null, p_headers jsonb default null,
  out outcome text, out message_id bigint
)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_now constant bigint := floor(extract(epoch from now()) * 1000)::bigint;
  v_at bigint := v_now;
  v_channel_id bigint;
  v_name text;
  v_max_size bigint;
  v_max_bytes bigint;
  v_must_notify boolean;
begin
  if p_channel is null or length(p_channel) not between 1 and 255 or p_channel ~ '[[:cntrl:]]' then
    perform require_channel(p_channel);
  elsif p_content is null then
    perform reject('content', null, 'bytes');
  elsif num_nonnulls(p_dequeue_at, p_delay_ms, p_key, p_max_attempts, p_headers) > 0 then
    if p_dequeue_at not between -9000000000000000 and 9000000000000000 then
      perform reject('dequeue_at', p_dequeue_at::text, 'between -9000000000000000 and 9000000000000000 (milliseconds)');
    elsif p_delay_ms not between 0 and 3155760000000 then
      perform reject('delay_ms', p_delay_ms::text, 'between 0 and 3155760000000 (100 years)');
    elsif p_dequeue_at is not null and p_delay_ms is not null then
      perform reject('delay_ms', p_delay_ms::text, 'absent if dequeue_at is given');
    elsif length(p_key) not between 1 and 255 then
      perform reject('key', p_key, '1 to 255 characters');
    elsif p_max_attempts < 1 then
      perform reject('max_attempts', p_max_attempts::text, 'at least 1');
    elsif p_headers is not null then
      perform require_headers(p_headers);
    end if;
    v_at := coalesce(p_dequeue_at, floor(extract(epoch from clock_timestamp()) * 1000)::bigint + p_delay_ms, v_now);
  end if;
  select s.channel_id, s.max_content_bytes, c.name, nullif(coalesce(c.max_size, s.max_size), -1)
  into v_channel_id, v_max_bytes, v_name, v_max_size
  from (select channel_id(s.salt, p_channel), s.max_content_bytes, s.max_size from setting s where s.is_only offset 0) s
  left join lateral (select c.name, c.max_size from channel c where c.id = s.channel_id offset 0) c on true;
  if octet_length(p_content) > v_max_bytes then
    perform reject('content', octet_length(p_content) || ' bytes', format('at most %s bytes', v_max_bytes));
  end if;
  if p_key is not null then
    select 'duplicate', m.id into outcome, message_id
    from message m where m.channel_id = v_channel_id and m.key = p_key;
    if found then
      return;
    end if;
  end if;
  if v_max_size is not null and channel_waiting(v_channel_id) >= v_max_size then
    outcome := 'dropped';
    return;
  end if;

  if p_key is null then
    insert into message (channel_id, channel_name, dequeue_at, created_at, max_attempts, content, headers)
    values (v_channel_id, nullif(p_channel, v_name), v_at, v_now, p_max_attempts, p_content, p_headers)
    returning 'created', id into outcome, message_id;
  else
    -- Of two concurrent calls with the same key, one inserts the message and the other finds it, unless it is already
    -- gone.
    for v_try in 1..100 loop
      insert into message (channel_id, channel_name, dequeue_at, created_at, max_attempts, key, content, headers)
      values (v_channel_id, nullif(p_channel, v_name), v_at, v_now, p_max_attempts, p_key, p_content, p_headers)
      on conflict (channel_id, key) where key is not null do nothing
      returning 'created', id into outcome, message_id;
      exit when found;
      select 'duplicate', m.id into outcome, message_id
      from message m where m.channel_id = v_channel_id and m.key = p_key;
      if found then
        return;
      end if;
    end loop;
  end if;
  -- As in sleepers_notify, which would cost twice as much here.
  insert into wake (channel_id, channel_name, at, message_id, to_at, to_id, waiting)
  values (v_channel_id, p_channel, v_at, message_id, v_at, message_id, 1)
  returning exists (select from sleepers_registered()) into v_must_notify;
  if v_must_notify then
    perform sleepers_notify();
  end if;
end
$$;
