-- group_create: create messages, the members of a group, and another one, its callback. The callback is due when all
-- members have ended, however they end, and at the latest after p_deadline_ms (default: seven days, for which results
-- are kept). The arrays are those of message_create_many; the results of all members are kept. The callback's holder
-- reads them with group_results.
-- Returns 'created' with the callback's id and those of the members, 'duplicate' with the id of the live message that
-- has p_callback_key in that channel, or 'dropped' if one of the messages does not fit into its channel: then none is
-- created.
-- Locks:  as message_create.
-- Writes: message, wake, message_group (insert).
create or replace function group_create(
  p_channels text[], p_contents bytea[], p_callback_channel text, p_callback_content bytea,
  p_dequeue_ats bigint[] default null, p_delays_ms bigint[] default null, p_max_attempts integer[] default null,
  p_headers jsonb[] default null, p_callback_key text default null, p_callback_max_attempts integer default null,
  p_callback_headers jsonb default null, p_deadline_ms bigint default 604800000,
  out outcome text, out message_id bigint, out member_ids bigint[]
)
language plpgsql security definer
set search_path from current
as $$
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_count constant integer := cardinality(p_channels);
  -- The caller's array may begin at any index, and have any dimensions.
  v_headers jsonb[] := array(select unnest(p_headers));
begin
  if v_count is null or v_count not between 1 and 1000 then
    perform reject('channels', coalesce(v_count || ' elements', null), 'an array of 1 to 1000 elements');
  elsif p_deadline_ms is null or p_deadline_ms not between 1 and 604800000 then
    perform reject('deadline_ms', p_deadline_ms::text, 'between 1 and 604800000 (7 days)');
  end if;
  perform require_length('headers', cardinality(p_headers), v_count);
  perform require_headers(h) from unnest(v_headers) h where h is not null;
  begin
    select c.outcome, c.message_id into outcome, message_id
    from message_create(p_callback_channel, p_callback_content, p_delay_ms => p_deadline_ms, p_key => p_callback_key,
      p_max_attempts => p_callback_max_attempts, p_headers => p_callback_headers) c;
    if outcome <> 'created' then
      return;
    end if;
    v_headers := array(
      select coalesce(v_headers[n], '{}') || jsonb_build_object('lonnymq-keep-result-ms', '604800000',
        'lonnymq-group', message_id::text)
      from generate_series(1, v_count) n order by n
    );
    select array_agg(c.message_id order by c.ordinal) into member_ids
    from message_create_many(p_channels, p_contents, p_dequeue_ats, p_delays_ms, null, p_max_attempts, v_headers) c
    where c.outcome = 'created';
    if cardinality(member_ids) is distinct from v_count then
      -- Undoes what this block has created.
      raise object_not_in_prerequisite_state;
    end if;
  exception when object_not_in_prerequisite_state then
    outcome := 'dropped';
    message_id := null;
    member_ids := null;
    return;
  end;
  insert into message_group (callback_id, members, created_at, deadline_at, check_at)
  values (message_id, member_ids, v_now, v_now + p_deadline_ms, v_now + 5000);
end
$$;
