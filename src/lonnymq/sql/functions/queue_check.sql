-- queue_check: compare turns, leases, wakes and messages, and report every broken invariant; with p_repair, repair it.
-- Returns no row if nothing is broken. A repair counts again from the rows themselves and makes dequeue look at every
-- channel again.
-- Locks:  with p_repair, all turns that are not locked; problems of locked turns are reported but not repaired.
-- Writes: with p_repair: turn, channel, wake.
create or replace function queue_check(p_repair boolean default false)
returns table (problem text, channel text, detail text, is_repaired boolean)
language plpgsql security definer
set search_path from current
set jit = off
as $$
#variable_conflict use_column
declare
  v_turns tid[] := '{}';
  v_missing bigint[];
begin
  if p_repair then
    perform require_read_committed('queue_check');
    select coalesce(array_agg(s.ctid), '{}') into v_turns from (select t.ctid from turn t for update skip locked) s;
  end if;
  return query
  with facts as materialized (
    select c.id, coalesce(c.name, a.channel_id::text) as name, c.id is not null as has_channel, t.turns, t.tid,
      t.next_at, t.return_at, t.last_at, t.in_flight, t.waiting, t.has_uncapped, t.mark_at, t.mark_id, t.late_at,
      t.late_id, t.late_to, t.late_to_id, a.channel_id,
      coalesce(l.leases, 0) as leases, coalesce(l.capped, 0) as capped, coalesce(m.messages, 0) as messages,
      coalesce(w.done, 0) as done, coalesce(w.waiting, 0) as unfolded, coalesce(w.soon, 0) as soon, w.has_name,
      nullif(coalesce(c.max_concurrency, s.max_concurrency), -1) as max_concurrency, c.is_paused,
      nullif(coalesce(c.release_interval_ms, s.release_interval_ms), -1) as release_interval_ms,
      coalesce(c.release_burst, s.release_burst, 1) as release_burst,
      -- A new default policy will wake the channels that wait for the old one (see policy_announce).
      exists (select from policy_change) as is_announced
    from (
      select t.channel_id from turn t union select m.channel_id from message m
      union select l.channel_id from lease l union select w.channel_id from wake w union select c.id from channel c
    ) a
    cross join setting s
    left join channel c on c.id = a.channel_id
    left join lateral (
      select count(*) over () as turns, t.ctid as tid, t.* from turn t
      where t.channel_id = a.channel_id order by t.version desc limit 1
    ) t on true
    left join (
      select l.channel_id, count(*) as leases, count(*) filter (where l.is_capped) as capped
      from lease l group by l.channel_id
    ) l on l.channel_id = a.channel_id
    left join (
      select m.channel_id, count(*) as messages from message m group by m.channel_id
    ) m on m.channel_id = a.channel_id
    left join (
      select w.channel_id, sum(w.done) as done, sum(w.waiting) as waiting, count(*) filter (where w.lane < 2) as soon,
        bool_or(w.channel_name is not null) as has_name
      from wake w group by w.channel_id
    ) w on w.channel_id = a.channel_id
  ),
  -- The next message that is not leased, and whether the turn would find it.
  heads as materialized (
    select f.*, h.id as head_id, h.dequeue_at as head_at, h.is_covered
    from facts f
    left join lateral (
      select m.id, m.dequeue_at, (m.dequeue_at, m.id) > (f.mark_at, f.mark_id)
        or f.late_at is not null and (m.dequeue_at, m.id) > (f.late_at, f.late_id)
          and (m.dequeue_at, m.id) <= (f.late_to, f.late_to_id) as is_covered
      from message m
      where m.channel_id = f.channel_id and not exists (select from lease l where l.message_id = m.id)
      order by m.dequeue_at, m.id + 0 limit 1
    ) h on true
  ),
  problems as (
    select h.*, p.problem, p.detail from heads h cross join lateral (values
      (h.turns > 1, 'two turns', format('%s turns', h.turns)),
      (h.turns is null and h.messages + h.leases > 0 and h.soon = 0, 'no turn and no wake',
        format('%s messages', h.messages)),
      (not h.has_channel and not coalesce(h.has_name, false) and (h.turns is not null or h.messages + h.leases > 0),
        'no channel', format('id %s', h.channel_id)),
      (h.turns is not null and h.in_flight <> h.capped + h.done, 'in_flight is wrong',
        format('in_flight %s, capped leases %s, unfolded done %s', h.in_flight, h.capped, h.done)),
      (h.turns is not null and h.leases > h.capped and not h.has_uncapped, 'has_uncapped is wrong',
        format('%s leases are not capped', h.leases - h.capped)),
      (h.turns is not null and h.waiting + h.unfolded <> h.messages - h.leases, 'waiting is wrong',
        format('waiting %s, unfolded %s, messages %s, leases %s', h.waiting, h.unfolded, h.messages, h.leases)),
      (h.head_id is not null and h.turns is not null and h.soon = 0 and not h.is_covered,
        'a message below the mark is forgotten',
        format('message %s at %s, mark (%s, %s)', h.head_id, h.head_at, h.mark_at, h.mark_id)),
      (h.head_id is not null and h.turns is not null and h.soon = 0 and h.next_at is null and h.return_at is null
        and not h.is_paused and (h.max_concurrency is null or h.leases < h.max_concurrency) and not h.is_announced,
        'parked although a message waits', format('message %s at %s', h.head_id, h.head_at)),
      -- The messages of a bulk load are due when its wake is read, which is later than their time but not in the
      -- future.
      (h.head_id is not null and h.soon = 0 and (h.max_concurrency is null or h.leases < h.max_concurrency)
        and not h.is_announced
        and h.next_at > greatest(h.head_at * 1000, h.last_at, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
          + coalesce(h.release_interval_ms * h.release_burst * 1000, 0) + 1000000, 'the turn comes too late',
        format('next_at %s, message %s at %s, last_at %s', h.next_at, h.head_id, h.head_at, h.last_at))
    ) p(is_broken, problem, detail)
    where p.is_broken
  ),
  leases_above_mark as (
    -- A leased message above its channel's mark would be leased again.
    select l.message_id, coalesce(c.name, l.channel_id::text) as name, t.ctid as tid from lease l
    join message m on m.id = l.message_id
    left join channel c on c.id = l.channel_id
    join lateral (
      select t.ctid, t.* from turn t where t.channel_id = l.channel_id order by t.version desc limit 1
    ) t on true
    where (m.dequeue_at, m.id) > (t.mark_at, t.mark_id)
  )
  select p.problem, p.name, p.detail, p.tid = any(v_turns) from problems p
  union all
  select 'a lease is past the mark', l.name, format('message %s', l.message_id), l.tid = any(v_turns)
  from leases_above_mark l;

  if p_repair then
    -- Leave channels that have a wake to dequeue, which will insert their turns: there may be many, and each needs a
    -- lock. Lock in a statement of its own, so that no plan locks more than these. Insert in the next one, whose
    -- snapshot shows what the previous holder of the lock has committed.
    v_missing := array(
      select a.channel_id
      from (select m.channel_id from message m union select l.channel_id from lease l) a
      where not exists (select from turn t where t.channel_id = a.channel_id)
        and (not exists (select from wake w where w.channel_id = a.channel_id and w.lane < 2)
          or exists (select from lease l where l.channel_id = a.channel_id))
    );
    v_missing := array(select c from unnest(v_missing) c where creation_lock('turn', c));
    with inserted as (
      insert into turn (channel_id, version, next_at)
      select c, 1, 0 from unnest(v_missing) c where not exists (select from turn t where t.channel_id = c)
      returning ctid
    )
    select v_turns || coalesce(array_agg(i.ctid), '{}') into v_turns from inserted i;
    v_missing := array(
      select distinct m.channel_id from message m
      where not exists (select from channel c where c.id = m.channel_id)
        and exists (select from turn t where t.channel_id = m.channel_id)
    );
    v_missing := array(select c from unnest(v_missing) c where creation_lock('channel', c));
    insert into channel (id, name)
    select distinct on (m.channel_id) m.channel_id, coalesce(m.channel_name, (
      select w.channel_name from wake w
      where w.channel_id = m.channel_id and w.channel_name is not null order by w.id limit 1
    ), 'lost channel ' || m.channel_id)
    from message m
    where m.channel_id = any(v_missing)
    order by m.channel_id, m.channel_name
    on conflict do nothing;
    delete from turn t using turn o where t.channel_id = o.channel_id and t.version < o.version
      and t.ctid = any(v_turns);
    update turn t set
      version = t.version + 1,
      next_at = least(t.last_at, (extract(epoch from clock_timestamp()) * 1000000)::bigint),
      return_at = null,
      last_at = least(t.last_at, (extract(epoch from clock_timestamp()) * 1000000)::bigint),
      in_flight = (select count(*) from lease l where l.channel_id = t.channel_id and l.is_capped)
        + (select coalesce(sum(w.done), 0) from wake w where w.channel_id = t.channel_id),
      waiting = (select count(*) from message m where m.channel_id = t.channel_id)
        - (select count(*) from lease l where l.channel_id = t.channel_id)
        - (select coalesce(sum(w.waiting), 0) from wake w where w.channel_id = t.channel_id),
      has_uncapped = true,
      mark_at = greatest(t.mark_at, h.at),
      mark_id = case when h.at > t.mark_at then h.id when h.at = t.mark_at then greatest(h.id, t.mark_id)
        else t.mark_id end,
      late_at = -9000000000000000,
      late_id = 0,
      late_to = 9000000000000000,
      late_to_id = 9223372036854775807
    from turn o
    left join lateral (
      -- The mark must not be below a leased message.
      select m.dequeue_at as at, m.id from lease l join message m on m.id = l.message_id
      where l.channel_id = o.channel_id order by m.dequeue_at desc, m.id desc limit 1
    ) h on true
    where t.ctid = any(v_turns) and o.ctid = t.ctid;
    insert into wake (channel_id, channel_name)
    select c.id, c.name from channel c where not exists (select from turn t where t.channel_id = c.id);
    perform sleepers_notify();
  end if;
end
$$;
