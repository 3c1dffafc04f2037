-- message_settle_one: what message_settle does, and choosing the messages, for one turn. That is the common case, and
-- without arrays and shares the same rules take half the time.
-- Returns the messages to lease, in the order to work them, and what is true for all of them; is_cut if the reply would
-- grow too large for p_limit.
-- Locks:  nothing more.
-- Writes: turn, wake (delete); channel on first use.
create or replace function message_settle_one(
  p_turn tid, p_limit integer, p_row_bytes bigint, p_wake_id bigint,
  out settled_at bigint, out messages tid[], out ids bigint[], out channel_id bigint, out name text, out is_capped boolean,
  out max_attempts integer, out interval_us bigint, out name_bytes integer, out is_cut boolean
)
language plpgsql
as $$
#variable_conflict use_column
declare
  t record;
  k record;
  c record;
  n record;
  v_uncapped bigint := 0;
  v_free bigint;
  v_spare bigint;
  v_release_at bigint;
  v_room bigint;
  v_due_at bigint;
  v_next_at bigint;
  v_limit integer := 0;
  v_given integer := 0;
  v_late_count integer := 0;
begin
  settled_at := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  select t.* into t from turn t where t.ctid = p_turn;
  if not found then
    return;
  end if;
  -- Fold its wakes; and only then read the policy, so that it is at least as new as any change they announce.
  select coalesce(sum(w.done), 0) as done, coalesce(sum(w.waiting), 0) as waiting, min(w.at) as at,
    min(case when w.lane = 1 then greatest(w.at, settled_at / 1000) else w.at end) as due_at, min(w.message_id) as first_id,
    max(w.to_at) as to_at, max(w.to_id) as to_id, max(w.id) as last_id, array_agg(w.ctid) as wakes,
    count(*) filter (where w.at is null or w.done > 0) as looks, min(w.channel_name) as name
  into k
  from (
    select w.ctid, w.* from wake w
    where w.channel_id = t.channel_id and w.id >= least(t.wake_id - 64, p_wake_id)
    order by w.id
  ) w;
  select c.name, c.is_paused, c.max_concurrency, c.release_interval_ms, c.release_burst, c.weight, c.max_attempts into c
  from channel c where c.id = t.channel_id;
  is_capped := c.max_concurrency is not null;
  name := coalesce(c.name, k.name);
  name_bytes := octet_length(name);
  max_attempts := c.max_attempts;
  channel_id := t.channel_id;
  t.in_flight := t.in_flight - k.done;
  t.waiting := t.waiting + k.waiting;
  -- Stamps from the future are from before the clock stepped back.
  if t.last_at > settled_at then
    t.last_at := settled_at;
    t.next_at := least(t.next_at, settled_at);
  end if;
  if (k.at, k.first_id) <= (t.mark_at, t.mark_id) then
    t.late_to := greatest(t.late_to, k.to_at);
    t.late_to_id := greatest(t.late_to_id, k.to_id);
    if t.late_at is null or (k.at, k.first_id - 1) < (t.late_at, t.late_id) then
      t.late_at := k.at;
      t.late_id := k.first_id - 1;
    end if;
  end if;

  -- How many it may have, and since when it has been waiting.
  if is_capped then
    if t.has_uncapped then
      v_uncapped := (select count(*) from lease l where l.channel_id = t.channel_id and not l.is_capped);
      t.has_uncapped := v_uncapped > 0;
    end if;
    v_free := c.max_concurrency - t.in_flight - v_uncapped;
  end if;
  if c.release_interval_ms is not null then
    interval_us := c.release_interval_ms * 1000;
    v_spare := (c.release_burst - 1) * interval_us;
    v_release_at := greatest(settled_at, least(t.release_at, t.last_at + v_spare + interval_us));
  end if;
  v_room := case when c.is_paused then 0
    else greatest(0, least(v_free, (settled_at + v_spare + interval_us - v_release_at) / interval_us, 2147483647)) end;
  v_due_at := greatest(t.last_at, least(t.next_at, k.due_at * 1000, case when k.looks > 0 then t.last_at end));

  -- The next messages, one more than it gets: first those that came late, below the mark, then those past it.
  if v_room > 0 and v_due_at <= settled_at then
    v_limit := least(p_limit, v_room, greatest(1, p_row_bytes / (110 + name_bytes)));
    is_cut := v_limit < least(p_limit, v_room);
    if t.late_at is not null then
      select array_agg(n.id) as ids, array_agg(n.dequeue_at) as ats, array_agg(n.tid) as tids,
        count(*) filter (where n.is_late) as late_count, count(*) filter (where n.dequeue_at * 1000 <= settled_at) as due_count
      into n
      from (
        select * from (
          (
            select l.id, l.dequeue_at, l.tid, true as is_late
            from message_late(t.channel_id, t.late_at, t.late_id, t.late_to, t.late_to_id, t.mark_at, t.mark_id, v_limit + 1) l
          )
          union all
          (
            select m.id, m.dequeue_at, m.ctid as tid, false as is_late
            from message m
            where m.channel_id = t.channel_id and (m.dequeue_at, m.id + 0) > (t.mark_at, t.mark_id)
            order by m.channel_id, m.dequeue_at, m.id + 0
            limit v_limit + 1
          )
        ) a
        limit v_limit + 1
      ) n;
      v_late_count := n.late_count;
    else
      select array_agg(n.id) as ids, array_agg(n.dequeue_at) as ats, array_agg(n.tid) as tids,
        count(*) filter (where n.dequeue_at * 1000 <= settled_at) as due_count
      into n
      from (
        select m.id, m.dequeue_at, m.ctid as tid
        from message m
        where m.channel_id = t.channel_id and (m.dequeue_at, m.id + 0) > (t.mark_at, t.mark_id)
        order by m.channel_id, m.dequeue_at, m.id + 0
        limit v_limit + 1
      ) n;
    end if;
    v_given := least(v_limit, n.due_count);
    if v_given > 0 then
      if v_given = v_limit and v_limit < v_room and t.taken + v_given < c.weight and interval_us is null
          and n.ats[v_given + 1] is not null then
        -- The end of the reply cuts its turn: it keeps its place.
        t.taken := t.taken + v_given;
        t.last_at := v_due_at;
      else
        t.taken := 0;
        t.last_at := settled_at;
      end if;
      t.waiting := t.waiting - v_given;
      if is_capped then
        t.in_flight := t.in_flight + v_given;
      else
        t.has_uncapped := true;
      end if;
      v_release_at := v_release_at + v_given * interval_us;
    end if;
    v_next_at := greatest(n.ats[v_given + 1] * 1000, t.last_at, v_release_at - v_spare);
    if n.ats[v_given + 1] is null then
      v_next_at := null;
    end if;
    if v_given > v_late_count then
      t.mark_at := n.ats[v_given];
      t.mark_id := n.ids[v_given];
    end if;
    if v_given >= v_late_count then
      t.late_at := null; t.late_id := null; t.late_to := null; t.late_to_id := null;
    elsif v_given > 0 then
      t.late_at := n.ats[v_given];
      t.late_id := n.ids[v_given];
    end if;
  else
    v_next_at := case when v_room = 0 then greatest(v_due_at, v_release_at - v_spare) else v_due_at end;
  end if;
  if c.is_paused then
    v_next_at := null;
  elsif v_free <= v_given then
    -- Full. A completion's wake brings it back, except those that nobody reports.
    v_next_at := case when t.has_uncapped then settled_at + 200000 end;
  end if;

  update turn u set version = u.version + 1, next_at = v_next_at, last_at = t.last_at, release_at = coalesce(v_release_at, 0),
    mark_at = t.mark_at, mark_id = t.mark_id, late_at = t.late_at, late_id = t.late_id, late_to = t.late_to,
    late_to_id = t.late_to_id, in_flight = t.in_flight, waiting = t.waiting, wake_id = greatest(u.wake_id, k.last_id),
    has_uncapped = t.has_uncapped, taken = t.taken
  where u.ctid = p_turn;
  if c.name is null then
    perform channel_keep(array[t.channel_id]);
  end if;
  if k.wakes is not null then
    delete from wake w where w.ctid = any(k.wakes);
  end if;
  if v_given = 0 then
    return;
  end if;
  messages := n.tids[1:v_given];
  ids := n.ids[1:v_given];
end
$$;
