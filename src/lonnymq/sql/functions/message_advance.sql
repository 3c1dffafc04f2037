-- message_advance: end attempts whose work is done and has a next step. The message goes on with that: in the same
-- channel, with the same id, key and max_attempts, otherwise as if it had just been created. It waits for p_delays_ms
-- (null: not at all, and a priority is kept). p_contents and p_headers replace its content and its headers; null leaves
-- them as they are. max_size does not apply.
-- Returns per message, in the order given: 'advanced', or as message_complete.
-- Locks:  its own leases and messages, skipping locked ones.
-- Writes: lease (delete), message, history, wake (insert).
create or replace function message_advance(
  p_ids bigint[], p_tokens bigint[], p_contents bytea[] default null, p_delays_ms bigint[] default null,
  p_headers jsonb[] default null
) returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_leases tid[];
  v_messages tid[];
  v_ordinals integer[];
  v_outcomes text[];
  v_waiting tid[];
  -- The caller's arrays may begin at any index, and have any dimensions.
  v_contents constant bytea[] := array(select unnest(p_contents));
  v_delays_ms constant bigint[] := array(select unnest(p_delays_ms));
  v_headers constant jsonb[] := array(select unnest(p_headers));
  v_max_bytes bigint;
  v_ended integer;
begin
  perform require_length('contents', cardinality(p_contents), cardinality(p_ids));
  perform require_length('delays_ms', cardinality(p_delays_ms), cardinality(p_ids));
  perform require_length('headers', cardinality(p_headers), cardinality(p_ids));
  if p_contents is not null then
    v_max_bytes := (select s.max_content_bytes from setting s where s.is_only);
    perform reject('contents', octet_length(c) || ' bytes', format('at most %s bytes each', v_max_bytes))
    from unnest(v_contents) c where octet_length(c) > v_max_bytes limit 1;
  end if;
  perform reject('delays_ms', d::text, 'between 0 and 3155760000000 (100 years)')
  from unnest(v_delays_ms) d where d not between 0 and 3155760000000 limit 1;
  perform require_headers(h) from unnest(v_headers) h where h is not null;
  select * into v_leases, v_messages, v_ordinals, v_outcomes from lease_lock(p_ids, p_tokens, true);
  if v_leases is not null then
    perform history_record(v_leases, v_messages, 'completed', null);
    with advanced as (
      update message m set
        dequeue_at = case when m.dequeue_at < 0 and v_delays_ms[u.ordinal] is null then m.dequeue_at
          else v_now + coalesce(v_delays_ms[u.ordinal], 0) end,
        -- With the id it identifies the step (decision 15), even if the last one took less than a millisecond.
        created_at = greatest(v_now, m.created_at + 1),
        attempts = 0,
        suspicion = 0,
        content = coalesce(v_contents[u.ordinal], m.content),
        state = null,
        error = null,
        headers = nullif(coalesce(v_headers[u.ordinal], m.headers), '{}')
      from unnest(v_messages, v_ordinals) u(tid, ordinal)
      where m.ctid = u.tid
      returning m.ctid
    )
    select array_agg(a.ctid) into v_waiting from advanced a;
    v_ended := lease_end(v_leases, v_waiting);
  end if;
  return query
  select u.id, coalesce(v_outcomes[u.ordinal], 'advanced') from unnest(p_ids) with ordinality u(id, ordinal);
end
$$;
