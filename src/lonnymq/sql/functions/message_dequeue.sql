-- message_dequeue: lease up to p_limit messages for p_lease_ms to p_worker, fairly, within caps and rate limits.
-- Returns one row per message, 'leased', in the order to work them; fewer than p_limit where the reply would grow too
-- large. key, content and state are null where they would make it too large; unread_bytes is their size then: read those
-- with message_read. If there is no message, one row says 'empty', or 'busy' (others hold what is due, or there is more to
-- look at), with the milliseconds after which asking again makes sense.
-- p_is_durable false: this transaction's commit does not wait for the disk. Right if it does nothing but dequeue,
-- since a lease lost in a crash is only a redelivery.
-- p_is_shared true: the caller works several messages in one process, so that the loss of a lease need not be its own
-- message's fault (see lease_expire). suspicion tells how often that has happened to a message; at 2 or more it should
-- be worked alone, which message_heartbeat then says.
-- Locks:  turns and expired leases, O(p_limit) of them, always skipping locked ones.
-- Writes: turn, lease, wake (delete); channel on first use; what expired leases bring (see lease_expire).
create or replace function message_dequeue(
  p_limit integer default 1,
  p_lease_ms bigint default 30000,
  p_worker text default null,
  p_is_durable boolean default true,
  p_is_shared boolean default false
) returns table (
  outcome text, wait_ms bigint, message_id bigint, channel text, token bigint, attempt integer, max_attempts integer,
  suspicion smallint, dequeue_at bigint, created_at bigint, leased_at bigint, unlock_at bigint, key text,
  unread_bytes integer, content bytea, state bytea
)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  -- A reply must fit the socket's buffers: a client that stops reading would hold its turns' locks.
  c_limit constant integer := least(p_limit, 500);
  -- What this session remembers between calls. These are hints only: a full look starts without them. A role or a
  -- database may have a default for any setting; ours ends with the id of this process, which no default knows.
  c_setting constant text := 'lonnymq.hints_2_' || 'turn'::regclass::oid;
  v_setting text := current_setting(c_setting, true);
  h dequeue_hints := (case when v_setting like '%,' || pg_backend_pid() || ')' then v_setting
    else '(,,,,,,,"(0,,)","(0,,)",' || pg_backend_pid() || ')' end)::dequeue_hints;
  v_now bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_next_full_at bigint := h.full_at + least(greatest(40 * h.full_cost, 2000), 5000000);
  v_is_first boolean := h.full_at is null;
  v_is_full boolean := v_is_first or v_now < h.full_at or v_now >= v_next_full_at;
  v_was_full boolean := v_is_full;

  v_left integer := c_limit;
  v_content_bytes bigint := 33000;      -- what is left of the reply for contents,
  v_row_bytes bigint := 60000;          -- and for the rest
  v_window integer := 256 + 2 * c_limit;
  v_is_busy boolean := false;
  v_has_created boolean := false;
  v_look record;       -- what dequeue_look returns
  v_woken record;      -- what turn_lock_woken returns
  v_last_wake bigint;
  v_turns tid[];
  v_due tid[];
  v_min bigint;
  v_low bigint;        -- no turn that woke will have a lower next_at
  v_wake_id bigint;    -- the lowest wake found
  v settlement;
  v_count integer;
begin
  -- Asked here, so that a call that is right does not pay for another function.
  if (p_limit between 1 and 10000 and p_lease_ms between 1 and 86400000 and coalesce(length(p_worker), 0) <= 255
    and current_setting('transaction_isolation') in ('read committed', 'read uncommitted')) is not true then
    perform require_dequeue(p_limit, p_lease_ms, p_worker);
  end if;
  if p_is_durable is false then
    v_setting := set_config('synchronous_commit', 'off', true);
  end if;
  -- A caller that stalls inside its own transaction holds its tenants back no longer than its lease.
  if current_setting('idle_in_transaction_session_timeout') = '0' then
    v_setting := set_config('idle_in_transaction_session_timeout', greatest(p_lease_ms, 1000)::text, true);
  end if;

  for v_round in 1..8 loop
    v_turns := null;
    v_low := null;
    v_wake_id := null;

    -- 1. Once in a while, look at everything.
    if v_is_full then
      v_look := dequeue_look(h, v_now);
      h := v_look.h;
      v_last_wake := v_look.last_wake;
      if v_look.is_swept then
        v_wake_id := 0;
      end if;
    end if;

    -- 2. Find and lock the turns of channels that woke: in the first round, and as long as there is nothing to lease.
    if v_round = 1 or v_is_full
        or v_left = c_limit and ((h.soon).low_id is not null or (h.bulk).low_id is not null) then
      for v_lane in 0..1 loop
        continue when v_lane = 1 and not v_is_full and (h.bulk).low_id is null;
        v_woken := turn_lock_woken(v_lane, case v_lane when 0 then h.soon else h.bulk end, c_limit, v_window,
          v_last_wake, not v_has_created);
        if v_lane = 0 then
          h.soon := v_woken.pass;
        else
          h.bulk := v_woken.pass;
        end if;
        if v_woken.wake_id is not null then
          v_turns := case when v_turns is null then v_woken.turns
            else array(select distinct u from unnest(v_turns || v_woken.turns) u) end;
          v_wake_id := least(v_wake_id, v_woken.wake_id);
          v_low := least(v_low, v_woken.low);
          v_is_busy := v_is_busy or coalesce(v_woken.is_busy, false);
          v_has_created := v_has_created or coalesce(v_woken.has_created, false);
        end if;
      end loop;
      v_window := v_window * 2;
    end if;

    -- 3. Find and lock the turns that are due, least recently served first.
    select array_agg(s.ctid), min(s.next_at) into v_due, v_min
    from (
      select ctid, next_at from turn
      where next_at <= v_now and next_at >= h.turn_at
      order by next_at limit v_left for update skip locked
    ) s;
    h.turn_at := least(coalesce(v_min, v_now), v_low);
    if v_turns is null then
      v_turns := v_due;
    elsif v_due is not null then
      v_turns := array(select distinct u from unnest(v_turns || v_due) u);
    end if;
    if v_is_full then
      -- A session's first look also plans its statements, which says nothing. If more leases have expired, look again
      -- soon.
      h.full_cost := case when v_is_first or v_look.is_more then 0
        else (extract(epoch from clock_timestamp()) * 1000000)::bigint - v_look.looked_at end;
    end if;

    -- 4. Settle what is locked, in statements that see what the locks protect; then lease the messages they chose.
    if v_turns is not null then
      v := case when cardinality(v_turns) = 1 then message_settle_one(v_turns[1], v_left, v_row_bytes, v_wake_id)
        else message_settle(v_turns, v_left, v_row_bytes, v_wake_id) end;
      if v.messages is not null then
        return query
        with leased as materialized (
          select m.*, u.place,
            -- Never issued twice: random, and of this microsecond.
            (random() * 4611686018427387904)::bigint # v.settled_at as token,
            octet_length(m.content) + coalesce(octet_length(m.state), 0) + coalesce(octet_length(m.key), 0) as bytes
          from unnest(v.messages, v.ids, v.places) u(tid, id, place)
          -- Not "=": for a join by id, a planner that believes the table empty reads the whole index.
          join message m on m.ctid = u.tid and m.id is not distinct from u.id
        ),
        inserted as (
          insert into lease (message_id, channel_id, token, attempt, is_capped, is_shared, leased_at, unlock_at, worker)
          select l.id, l.channel_id, l.token, l.attempts + 1, v.are_capped[l.place], p_is_shared is true, v.settled_at,
            v.settled_at + p_lease_ms * 1000, p_worker
          from leased l
        )
        select 'leased', null::bigint, l.id, coalesce(l.channel_name, v.names[l.place]), l.token, l.attempts + 1,
          coalesce(l.max_attempts, v.max_attempts[l.place]), l.suspicion, l.dequeue_at, l.created_at,
          v.settled_at, v.settled_at + p_lease_ms * 1000, case when l.fits then l.key end,
          case when l.fits then null else l.bytes end, case when l.fits then l.content end,
          case when l.fits then l.state end
        from (
          -- If the contents are too large for the reply together: those that take no more than an equal share of it.
          select l.*, l.bytes <= (
            select case when sum(l.bytes) <= v_content_bytes then v_content_bytes else v_content_bytes / count(*) end
            from leased l
          ) as fits
          from leased l
        ) l;
        get diagnostics v_count = row_count;
        if v_count < cardinality(v.messages) then
          -- Some were cancelled between the choice and the lease: the next round chooses again.
          perform turn_refund(v);
        end if;
        if v_count > 0 then
          v_left := v_left - v_count;
          -- Another round is rare: its reply is small.
          v_content_bytes := 1000;
          v_row_bytes := v_row_bytes - v_count * (110 + v.name_bytes);
          exit when v_left = 0 or v.is_cut;
        end if;
      end if;
    end if;

    -- 5. Go on, or stop?
    v_now := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
    v_is_full := false;
    if v_turns is null and (v_left < c_limit or (h.soon).low_id is null and (h.bulk).low_id is null) then
      exit when v_left < c_limit or v_was_full;
      -- The hints led to nothing. If other calls hold what is due, say so; otherwise look at everything before saying
      -- "empty", unless an expensive look has just been taken.
      v_is_busy := v_is_busy or exists (
        select from turn t where t.next_at <= v_now and t.next_at >= h.turn_at order by t.next_at limit 1
      );
      exit when v_is_busy or h.full_cost > 10000 and v_now - h.full_at < 2 * h.full_cost;
      v_is_full := true;
      v_was_full := true;
    end if;
  end loop;

  -- 6. Say when to come back.
  if v_left = c_limit then
    -- The rounds may not have been enough to look at all of it.
    v_is_busy := v_is_busy or v_turns is not null or (h.soon).low_id is not null or (h.bulk).low_id is not null;
    select o.outcome, o.wait_ms into outcome, wait_ms
    from dequeue_outlook(h, v_now, v_is_busy, v_was_full, v_next_full_at) o;
    return next;
  end if;
  v_setting := set_config(c_setting, h::text, false);
end
$$;
