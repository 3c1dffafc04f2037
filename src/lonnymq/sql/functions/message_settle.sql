-- message_settle: for turns that this transaction has locked in an earlier statement: fold their wakes, read their
-- policy, lease their next messages, and say when to look at them again. Part of message_dequeue.
-- One statement, so that it deletes exactly the wakes it has read; its snapshot is younger than the locks.
-- Locks:  nothing more.
-- Writes: turn, lease (insert), wake (delete).
create or replace function message_settle(
  p_turns tid[], p_limit integer, p_lease_us bigint, p_worker text, p_is_full boolean
) returns table (
  outcome text, wait_ms bigint, message_id bigint, channel text, token bigint, attempt integer, max_attempts integer,
  dequeue_at bigint, created_at bigint, leased_at bigint, unlock_at bigint, key text,
  content_bytes integer, content bytea, state bytea
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
begin
  return query
  -- Each turn after folding its wakes.
  with held as materialized (
    select t.ctid as tid, t.channel_id, t.version, t.mark_at, t.mark_id, t.cap_xid,
      -- Stamps from the future are from before the clock stepped back.
      least(t.last_at, v_now) as last_at,
      case when t.last_at > v_now then least(t.next_at, v_now) else t.next_at end as next_at,
      case
        when c.release_interval_ms is null then 0
        when t.release_at > v_now + c.release_burst * c.release_interval_ms * 1000 then v_now
        else greatest(t.release_at, v_now)
      end as release_at,
      t.in_flight - k.done as in_flight,
      t.size + k.made as size,
      greatest(t.wake_id, k.last_id) as wake_id,
      case when t.late_at is null or (k.late_at, k.late_id) < (t.late_at, t.late_id) then k.late_at else t.late_at
        end as late_at,
      case when t.late_at is null or (k.late_at, k.late_id) < (t.late_at, t.late_id) then k.late_id else t.late_id
        end as late_id,
      greatest(t.late_to, k.late_to) as late_to,
      k.at, k.looks, k.wakes,
      c.name, c.weight, c.is_paused, c.release_burst,
      coalesce(c.max_concurrency, 9223372036854775807) as max_concurrency,
      c.max_concurrency is not null as is_capped,
      c.release_interval_ms * 1000 as interval_us
    from turn t
    join channel c on c.id = t.channel_id
    cross join lateral (
      select coalesce(sum(w.done), 0) as done, coalesce(sum(w.made), 0) as made,
        min(w.at) as at, count(*) filter (where w.at is null) as looks, max(w.id) as last_id, array_agg(w.ctid) as wakes,
        min(w.at) filter (where (w.at, w.message_id) <= (t.mark_at, t.mark_id)) as late_at,
        min(w.message_id) filter (where (w.at, w.message_id) <= (t.mark_at, t.mark_id)) - 1 as late_id,
        max(w.to_at) filter (where (w.at, w.message_id) <= (t.mark_at, t.mark_id)) as late_to
      from wake w
      where w.channel_id = t.channel_id and w.id >= case when p_is_full then 0 else t.wake_id - 64 end
    ) k
    where t.ctid = any(p_turns)
  ),
  -- How many it may have, and since when it has been waiting.
  ready as materialized (
    select h.*,
      case when h.is_paused then 0 else greatest(0, least(
        h.max_concurrency - h.in_flight,
        h.release_burst - (h.release_at - v_now + h.interval_us - 1) / h.interval_us
      )) end as room,
      greatest(h.last_at, least(h.next_at, h.at * 1000, case when h.looks > 0 then h.last_at end)) as due_at
    from held h
  ),
  ranked as (
    select r.*, r.room > 0 and r.due_at <= v_now as is_ready,
      row_number() over (order by (r.room > 0 and r.due_at <= v_now) desc, r.due_at, r.channel_id) as place,
      sum(r.weight) filter (where r.room > 0 and r.due_at <= v_now) over () as weights
    from ready r
  ),
  shared as (
    select r.*, case when r.is_ready and r.place <= p_limit
      then least(r.room, r.weight * ((p_limit + r.weights - 1) / r.weights)) else 0 end as share
    from ranked r
  ),
  -- The next messages: first those that came late, below the mark, then those past it. One more than the share.
  looked as (
    select s.*, m.ids, m.ats, m.tids, m.late_count, least(s.share, m.due_count) as due_count
    from shared s
    cross join lateral (
      select array_agg(n.id) as ids, array_agg(n.dequeue_at) as ats, array_agg(n.tid) as tids,
        count(*) filter (where n.is_late) as late_count, count(*) filter (where n.dequeue_at * 1000 <= v_now) as due_count
      from (
        select * from (
          (
            select m.id, m.dequeue_at, m.ctid as tid, true as is_late
            from message m
            where s.late_at is not null and m.channel_id = s.channel_id
              and (m.dequeue_at, m.id) > (s.late_at, s.late_id)
              and (m.dequeue_at, m.id) <= (s.mark_at, s.mark_id) and m.dequeue_at <= s.late_to
              and (select true from lease l where l.message_id = m.id) is null
            order by m.channel_id, m.dequeue_at, m.id
            limit s.share + 1
          )
          union all
          (
            select m.id, m.dequeue_at, m.ctid as tid, false as is_late
            from message m
            where m.channel_id = s.channel_id and (m.dequeue_at, m.id) > (s.mark_at, s.mark_id)
            order by m.channel_id, m.dequeue_at, m.id
            limit s.share + 1
          )
        ) u
        limit case when s.share > 0 then s.share + 1 else 0 end
      ) n
    ) m
  ),
  -- Whole rounds for everybody, then what is left in order of waiting.
  dealt as (
    select l.*, least(l.due_count, l.weight * (p_limit / l.weights)) as whole from looked l
  ),
  given as materialized (
    select d.*, (d.whole + greatest(0, least(d.due_count - d.whole,
      p_limit - sum(d.whole) over () - (sum(d.due_count - d.whole) over (order by d.place) - (d.due_count - d.whole))
    )))::integer as given
    from dealt d
  ),
  leased as materialized (
    select m.id, g.channel_id, coalesce(m.channel_name, g.name) as name, m.attempts + 1 as attempt, m.max_attempts, m.dequeue_at, m.created_at, m.key,
      m.content, m.state, octet_length(m.content) as content_bytes,
      -- Never issued twice: random, and of this microsecond.
      (random() * 4611686018427387904)::bigint # v_now as token,
      (u.ordinal - 1) / g.weight as round, g.place, u.ordinal
    from given g
    cross join lateral unnest(g.tids[1:g.given]) with ordinality u(tid, ordinal)
    join message m on m.ctid = u.tid
    where g.given > 0
  ),
  inserted as (
    insert into lease (message_id, channel_id, token, attempt, leased_at, unlock_at, worker)
    select l.id, l.channel_id, l.token, l.attempt, v_now, v_now + p_lease_us, p_worker from leased l
  ),
  updated as (
    update turn t set
      version = g.version + 1,
      last_at = case when g.given > 0 then v_now else g.last_at end,
      release_at = g.release_at + coalesce(g.given * g.interval_us, 0),
      next_at = case
        when g.is_paused then null
        -- Full. The completion's wake brings it back; but completers that began before the cap was known may not have
        -- said so in the lane that is read at once. Until they are gone, look again.
        when g.in_flight + g.given >= g.max_concurrency then
          case when g.cap_xid <= (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint then null else v_now + 20000 end
        when g.share = 0 and g.room = 0 then greatest(g.due_at, g.release_at - (g.release_burst - 1) * g.interval_us)
        when g.share = 0 then g.due_at
        when g.ids[g.given + 1] is null then null
        else greatest(g.ats[g.given + 1] * 1000, case when g.given > 0 then v_now else g.last_at end,
          g.release_at + (g.given - g.release_burst + 1) * g.interval_us)
      end,
      mark_at = case when g.given > g.late_count then g.ats[g.given] else g.mark_at end,
      mark_id = case when g.given > g.late_count then g.ids[g.given] else g.mark_id end,
      late_at = case when g.share = 0 or g.given = 0 and g.late_count > 0 then g.late_at
        when g.given < g.late_count then g.ats[g.given] end,
      late_id = case when g.share = 0 or g.given = 0 and g.late_count > 0 then g.late_id
        when g.given < g.late_count then g.ids[g.given] end,
      late_to = case when g.share = 0 or g.given < g.late_count then g.late_to end,
      in_flight = g.in_flight + g.given,
      size = g.size,
      wake_id = g.wake_id,
      cap_xid = case when g.is_capped then coalesce(g.cap_xid, (pg_snapshot_xmax(pg_current_snapshot())::text)::bigint)
        end
    from given g
    where t.ctid = g.tid
  ),
  deleted as (
    delete from wake w using (select unnest(h.wakes) as tid from held h) k where w.ctid = k.tid
  )
  select 'leased', null::bigint, l.id, l.name, l.token, l.attempt, l.max_attempts, l.dequeue_at, l.created_at,
    v_now, v_now + p_lease_us, l.key, l.content_bytes,
    case when l.total_bytes <= 40000 then l.content end,
    case when l.total_bytes <= 40000 then l.state end
  from (
    select l.*,
      sum(l.content_bytes + coalesce(octet_length(l.state), 0)) over (order by l.round, l.place, l.ordinal) as total_bytes
    from leased l
  ) l
  order by l.round, l.place, l.ordinal;
end
$$;
