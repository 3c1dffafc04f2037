-- message_defer: end attempts that are to be repeated, after a delay in milliseconds (null: at once), with an opaque
-- state for the next attempt (null: unchanged; at most as large as a content) and the error of this one (the first
-- 20,000 characters are kept).
-- Returns per message, in the order given: 'deferred', 'buried' if this was its last attempt, or as message_complete.
-- Locks:  its own leases and messages, skipping locked ones.
-- Writes: lease (delete), message, dead, history, wake (insert).
create or replace function message_defer(
  p_ids bigint[], p_tokens bigint[], p_delays_ms bigint[] default null, p_states bytea[] default null,
  p_errors text[] default null
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
  v_spent integer[];
  v_kept integer[];
  v_errors constant text[] := array(
    select left(u.error, 20000) from unnest(p_errors) with ordinality u(error, ordinal) order by u.ordinal
  );
  -- The caller's arrays may begin at any index, and have any dimensions.
  v_delays_ms constant bigint[] := array(select unnest(p_delays_ms));
  v_states constant bytea[] := array(select unnest(p_states));
  v_max_bytes bigint;
  v_ended integer;
begin
  perform require_length('delays_ms', cardinality(p_delays_ms), cardinality(p_ids));
  perform require_length('states', cardinality(p_states), cardinality(p_ids));
  perform require_length('errors', cardinality(p_errors), cardinality(p_ids));
  if exists (select from unnest(p_delays_ms) d where d not between 0 and 3155760000000) then
    perform reject('delays_ms',
      (select min(d)::text from unnest(p_delays_ms) d where d not between 0 and 3155760000000),
      'between 0 and 3155760000000 (100 years)');
  end if;
  if p_states is not null then
    v_max_bytes := (select s.max_content_bytes from setting s where s.is_only);
    if exists (select from unnest(p_states) s where octet_length(s) > v_max_bytes) then
      perform reject('states', (select max(octet_length(s)) from unnest(p_states) s) || ' bytes',
        format('at most %s bytes each', v_max_bytes));
    end if;
  end if;
  select * into v_leases, v_messages, v_ordinals, v_outcomes from lease_lock(p_ids, p_tokens, true);
  if v_leases is not null then
    -- Indexes in v_messages: v_spent of the messages whose last attempt this was, v_kept of the others.
    select array_agg(a.ordinal) filter (where a.is_spent), array_agg(a.ordinal) filter (where not a.is_spent)
    into v_spent, v_kept
    from (
      select u.ordinal, coalesce(m.attempts + 1 >= coalesce(m.max_attempts, (
        select nullif(coalesce(c.max_attempts, s.max_attempts), -1)
        from setting s left join channel c on c.id = m.channel_id where s.is_only
      )), false) as is_spent
      from unnest(v_messages) with ordinality u(tid, ordinal)
      join message m on m.ctid = u.tid
    ) a;
    perform history_record(array_agg(v_leases[p]), array_agg(v_messages[p]), 'deferred',
      array_agg(v_errors[v_ordinals[p]]))
    from unnest(v_kept) p
    having count(*) > 0;
    perform history_record(array_agg(v_leases[p]), array_agg(v_messages[p]), 'buried',
      array_agg(v_errors[v_ordinals[p]])),
      dead_insert(array_agg(v_messages[p]), array_agg(v_errors[v_ordinals[p]]), array_agg(v_states[v_ordinals[p]]))
    from unnest(v_spent) p
    having count(*) > 0;
    with kept as (
      update message m set
        dequeue_at = v_now + coalesce(v_delays_ms[v_ordinals[p]], 0),
        attempts = m.attempts + 1,
        -- The worker survived the attempt.
        suspicion = 0,
        state = coalesce(v_states[v_ordinals[p]], m.state),
        error = coalesce(v_errors[v_ordinals[p]], m.error)
      from unnest(v_kept) p
      where m.ctid = v_messages[p]
      returning m.ctid
    )
    select array_agg(k.ctid) into v_waiting from kept k;
    v_ended := lease_end(v_leases, v_waiting);
  end if;
  return query
  select u.id, coalesce(v_outcomes[u.ordinal],
    case when array_position(v_ordinals, u.ordinal::integer) = any(v_spent) then 'buried' else 'deferred' end)
  from unnest(p_ids) with ordinality u(id, ordinal);
end
$$;
