-- message_settle_one: message_settle for one turn. This is the common case, and takes half the time without arrays and
-- shares. The rules are the same functions.
-- Reads:  turn, wake, channel, lease, message.
-- Locks:  nothing more.
-- Writes: turn, wake (delete); channel on first use.
create or replace function message_settle_one(p_turn tid, p_limit integer, p_row_bytes bigint, p_wake_id bigint)
returns settlement
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  t turn;
  k wake_total;
  c channel;
  s turn_plan;
  v_uncapped bigint := 0;
  v_ids bigint[];
  v_ats bigint[];
  v_messages tid[];
  v_due_count integer;
  v_given integer := 0;
  v_late_count integer := 0;
  v_is_cut boolean := false;
begin
  select t.* into t from turn t where t.ctid = p_turn;
  if not found then
    return null;
  end if;
  -- Add its wakes first, and only then read the policy, so that it is at least as new as any change they announce.
  select * into k from wake_total(t, least(t.wake_id - 64, p_wake_id), v_now);
  select * into c from channel c where c.id = t.channel_id;
  if t.has_uncapped and c.max_concurrency is not null then
    v_uncapped := lease_uncapped(t.channel_id);
  end if;
  s := row((turn_assess(p_turn, t, c, k, v_uncapped, v_now)).*, null, v_now, 0, 1)::turn_plan;

  -- Choose the next messages, and one more, to know what comes after them.
  if s.room > 0 and s.due_at <= v_now then
    s.share := least(p_limit, s.room, greatest(1, p_row_bytes / (110 + octet_length(s.name))));
    v_is_cut := s.share < least(p_limit, s.room);
    if s.late_at is null then
      select array_agg(n.id), array_agg(n.dequeue_at), array_agg(n.tid), count(*) filter (where n.dequeue_at * 1000 <= v_now)
      into v_ids, v_ats, v_messages, v_due_count
      from message_next(s.channel_id, s.mark_at, s.mark_id, s.share + 1) n;
    else
      select array_agg(n.id), array_agg(n.dequeue_at), array_agg(n.tid), count(*) filter (where n.dequeue_at * 1000 <= v_now),
        count(*) filter (where n.is_late)
      into v_ids, v_ats, v_messages, v_due_count, v_late_count
      from message_late_and_next(s, s.share + 1) n;
    end if;
    v_given := least(s.share, v_due_count);
    if v_given = s.share and s.share < s.room and s.had + v_given < s.weight and s.interval_us is null
        and v_ats[v_given + 1] is not null then
      -- The end of the reply cuts its turn: it keeps its place.
      s.taken := s.had + v_given;
      s.served_at := s.due_at;
    end if;
  end if;

  update turn u set version = u.version + 1, next_at = n.next_at, last_at = n.last_at, release_at = n.release_at,
    mark_at = n.mark_at, mark_id = n.mark_id, late_at = n.late_at, late_id = n.late_id, late_to = n.late_to,
    late_to_id = n.late_to_id, in_flight = n.in_flight, waiting = n.waiting, has_uncapped = n.has_uncapped,
    wake_id = n.wake_id, taken = n.taken
  from (select (turn_advance(s, v_ids, v_ats, v_late_count, v_given, v_now)).*) n
  where u.ctid = p_turn;
  if s.is_nameless then
    perform channel_keep(array[s.channel_id]);
  end if;
  if s.wakes is not null then
    delete from wake w where w.ctid = any(s.wakes);
  end if;
  if v_given = 0 then
    return null;
  end if;
  return row(v_now, v_messages[1:v_given], v_ids[1:v_given], array_fill(1, array[v_given]), array[s.channel_id],
    array[s.name], array[s.max_attempts], array[s.interval_us], array[s.free is not null], octet_length(s.name),
    v_is_cut)::settlement;
end
$$;
