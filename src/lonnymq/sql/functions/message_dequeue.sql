-- message_dequeue: lease up to p_limit messages for p_lease_ms to p_worker, fairly, within caps and rate limits.
-- Returns one row 'leased' per message, in the order to process them. There may be fewer than p_limit, because a reply
-- is bounded. If the contents would make it too large, key, content, state and headers are null and unread_bytes is
-- their size: read them with message_read. If nothing was leased, the only row says 'empty', or 'busy' (other calls
-- hold what is due, or there is more to look at), and wait_ms says after how long to ask again.
-- p_is_durable false: the commit does not wait for the disk. Right for a transaction that only dequeues, because a
-- lease that a crash loses is only delivered again.
-- p_is_shared true: the caller processes several messages in one process, so that a lost lease may be another message's
-- fault (see lease_expire). suspicion says how often that has happened to a message; from 2 on it should be processed
-- alone, and message_heartbeat be told so.
-- Locks:  turns and expired leases, in proportion to p_limit, always skipping locked ones.
-- Writes: turn, lease, wake (delete); channel on first use; as lease_expire.
create or replace function message_dequeue(
  p_limit integer default 1,
  p_lease_ms bigint default 30000,
  p_worker text default null,
  p_is_durable boolean default true,
  p_is_shared boolean default false
) returns table (
  outcome text, wait_ms bigint, message_id bigint, channel text, token bigint, attempt integer, max_attempts integer,
  suspicion smallint, dequeue_at bigint, created_at bigint, leased_at bigint, unlock_at bigint, key text,
  unread_bytes integer, content bytea, state bytea, headers jsonb
)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  -- A reply must fit the buffers of a socket: otherwise a client that stops reading would keep the turns locked.
  c_limit constant integer := least(greatest(p_limit, 0), 500);
  -- What this session remembers between calls. These are only hints: a full scan starts without them. A role or a
  -- database may have a default for any setting, so our value ends with the id of this process, which no default can
  -- know.
  c_setting constant text := 'lonnymq.hints_3_' || 'turn'::regclass::oid;
  v_setting text := current_setting(c_setting, true);
  v_hints dequeue_hints := (case when v_setting like '%,' || pg_backend_pid() || ')' then v_setting
    else '(,,,,,,,,,,"(0,,)","(0,,)",' || pg_backend_pid() || ')' end)::dequeue_hints;
  v_now bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  -- A full scan is due after at least 40 times what the last one took, so that they take a few per cent of the time.
  v_next_scan_at bigint := v_hints.full_scan_at + least(greatest(40 * v_hints.full_scan_us, 100000), 5000000);
  v_is_first_scan boolean := v_hints.full_scan_at is null;
  v_is_full_scan boolean := v_is_first_scan or v_now < v_hints.full_scan_at or v_now >= v_next_scan_at;
  v_has_scanned boolean := v_is_full_scan;

  v_left integer := c_limit;
  v_content_bytes bigint := 33000;   -- bytes of the reply that are left for contents, keys, states and headers
  v_row_bytes bigint := 60000;       -- and for the rest of the rows
  v_window integer := 256 + 2 * c_limit;
  v_quantum integer;                 -- how many messages a turn is worth: fewer in a short reply
  v_is_busy boolean := false;
  v_has_inserted boolean := false;
  v_may_insert boolean := true;      -- turns of new channels are inserted in one round only, because that takes locks
  v_scan record;                     -- what dequeue_start_full_scan returns
  v_woken record;                    -- what turn_lock_woken returns
  v_end_wake_id bigint;
  v_turns tid[];
  v_more_turns tid[];
  v_has_returning boolean;           -- some of the locked turns return from idleness
  v_returns_first boolean;           -- single replies alternate between returning channels and the rotation
  v_min_next_at bigint;              -- where the round begins to look for due turns
  v_first_next_at bigint;
  v_woken_next_at bigint;            -- no turn that woke will have a lower next_at
  v_wake_id bigint;                  -- the lowest wake found
  v_turn turn_allocation;            -- the only locked turn
  v_settled_at bigint;
  v_unlock_at bigint;
  v_settlement settlement;
  v_count integer;
begin
  -- Checked here first, so that a correct call does not pay for another function call.
  if (p_limit between 1 and 10000 and p_lease_ms between 1 and 86400000 and coalesce(length(p_worker), 0) <= 255
    and current_setting('transaction_isolation') in ('read committed', 'read uncommitted')) is not true then
    perform require_dequeue(p_limit, p_lease_ms, p_worker);
  end if;
  if p_is_durable is false then
    v_setting := set_config('synchronous_commit', 'off', true);
  end if;
  -- A caller that stalls inside its own transaction blocks these tenants for no longer than its lease.
  if current_setting('idle_in_transaction_session_timeout') = '0' then
    v_setting := set_config('idle_in_transaction_session_timeout', greatest(p_lease_ms, 1000)::text, true);
  end if;

  for v_round in 1..8 loop
    v_turns := null;
    v_has_returning := false;
    v_woken_next_at := null;
    v_wake_id := null;

    -- 1. If a full scan is due, begin it.
    if v_is_full_scan then
      v_scan := dequeue_start_full_scan(v_hints, v_now);
      v_hints := v_scan.hints;
      v_end_wake_id := v_scan.last_wake_id;
      if v_scan.is_clock_corrected then
        v_wake_id := 0;
      end if;
    end if;
    v_quantum := least(v_hints.quantum, greatest(c_limit / 8, 1));
    v_min_next_at := v_hints.min_next_at;
    v_returns_first := c_limit = 1 and v_hints.skipped_rotation is not true;

    -- 2. Find and lock the turns of channels that woke: in the first round, and while nothing has been leased.
    if v_round = 1 or v_is_full_scan
        or v_left = c_limit and ((v_hints.soon).lowest_id is not null or (v_hints.bulk).lowest_id is not null) then
      for v_lane in 0..1 loop
        continue when v_lane = 1 and not v_is_full_scan and (v_hints.bulk).lowest_id is null;
        v_woken := turn_lock_woken(v_lane, case v_lane when 0 then v_hints.soon else v_hints.bulk end, c_limit,
          v_window, v_end_wake_id, v_may_insert);
        if v_lane = 0 then
          v_hints.soon := v_woken.pass;
        else
          v_hints.bulk := v_woken.pass;
        end if;
        if v_woken.wake_id is not null then
          v_turns := v_turns || v_woken.turns;
          v_wake_id := least(v_wake_id, v_woken.wake_id);
          v_woken_next_at := least(v_woken_next_at, v_woken.min_next_at);
          v_is_busy := v_is_busy or coalesce(v_woken.is_busy, false);
          v_has_inserted := v_has_inserted or coalesce(v_woken.has_inserted, false);
          v_has_returning := v_has_returning or coalesce(v_woken.is_returning, false);
        end if;
      end loop;
      v_may_insert := v_may_insert and not v_has_inserted;
      v_window := v_window * 2;
    end if;

    -- 3. Find and lock the turns of channels that woke earlier and still wait for their first message.
    if v_hints.min_return_at is not null then
      select array_agg(s.ctid), min(s.return_at) into v_more_turns, v_hints.min_return_at
      from (
        select ctid, return_at from turn
        where return_at >= v_hints.min_return_at
        order by return_at limit (v_left + 1) / 2 for update skip locked
      ) s;
      v_turns := v_turns || v_more_turns;
      v_has_returning := v_has_returning or v_more_turns is not null;
    end if;

    -- 4. Find and lock the turns that are due, least recently served first: in the first round as many as fill the
    -- reply if each turn is worth a quantum, and at least as many as half of its messages.
    if not (v_has_returning and v_returns_first) then
      select array_agg(s.ctid), min(s.next_at) into v_more_turns, v_first_next_at
      from (
        select ctid, next_at from turn
        where next_at <= v_now and next_at >= v_hints.min_next_at
        order by next_at
        limit case when v_round > 1 then v_left
          else greatest((v_left - 1) / v_quantum + 1, case when v_has_returning then (v_left + 1) / 2 end) end
        for update skip locked
      ) s;
      v_hints.min_next_at := least(coalesce(v_first_next_at, v_now), v_woken_next_at);
      v_turns := v_turns || v_more_turns;
    else
      v_hints.min_next_at := least(v_hints.min_next_at, v_woken_next_at);
    end if;
    v_hints.skipped_rotation := v_has_returning and v_returns_first;
    if v_is_full_scan then
      -- The first scan of a session also plans its statements, so its time says nothing. If more leases have expired,
      -- the next scan should follow soon.
      v_hints.full_scan_us := case when v_is_first_scan or v_scan.has_more_expired then 0
        else (extract(epoch from clock_timestamp()) * 1000000)::bigint - v_scan.scan_started_at end;
    end if;

    -- 5. If a single turn is locked, which is the common case: one statement, which sees what the lock protects,
    -- chooses and leases its messages and writes the turn. Part 6 has a statement of its own, because PostgreSQL
    -- prepares every expression at each call: one for both would cost a fifth to a third more instructions.
    v_turn := null;
    if v_turns[1] = all (v_turns) then
      v_settled_at := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
      v_unlock_at := v_settled_at + p_lease_ms * 1000;
      v_turn := turn_allocate(v_turns[1], v_left, v_row_bytes, v_wake_id, v_quantum, v_settled_at);
    end if;
    if v_turn.tid is not null then
      return query
      with next as materialized (
        -- One message more than the share, to know what comes after it. The columns that are read most often are first.
        select message_wait(m.dequeue_at, m.created_at, v_settled_at) as wait_ms,
          message_bytes(m.key, m.content, m.state, m.headers) as bytes, m.dequeue_at, m.id,
          lease_token(v_settled_at) as token, m.attempts + 1 as attempt, m.created_at, m.suspicion, m.max_attempts,
          m.channel_name, m.key, m.content, m.state, m.headers
        from message m
        where m.channel_id = v_turn.channel_id and (m.dequeue_at, m.id + 0) > (v_turn.mark_at, v_turn.mark_id)
        order by m.channel_id, m.dequeue_at, m.id + 0
        limit case when v_turn.share > 0 then v_turn.share + 1 else 0 end
      ),
      advanced as (
        update turn t set version = t.version + 1, next_at = a.next_at, last_at = a.last_at, release_at = a.release_at,
          mark_at = a.mark_at, mark_id = a.mark_id, in_flight = a.in_flight, waiting = a.waiting,
          has_uncapped = a.has_uncapped, wake_id = a.wake_id, taken = a.taken, return_at = a.return_at,
          released = t.released + a.given, waited_ms = t.waited_ms + greatest(a.sum_ms, 0)::bigint
        from (
          select (turn_advance(v_turn, n.ids, n.ats, 0, n.given, v_settled_at)).*, n.given, n.sum_ms
          from (
            select array_agg(n.id) as ids, array_agg(n.dequeue_at) as ats,
              least(count(n.wait_ms), v_turn.share)::integer as given,
              -- Without the message that comes next.
              sum(n.wait_ms) - coalesce((array_agg(n.wait_ms))[v_turn.share + 1], 0) as sum_ms
            from next n
            offset 0
          ) n
        ) a
        where t.ctid = v_turn.tid
      ),
      inserted as (
        insert into lease (message_id, channel_id, token, attempt, is_capped, is_shared, leased_at, unlock_at, worker)
        select n.id, v_turn.channel_id, n.token, n.attempt, v_turn.cap_left is not null, p_is_shared is true,
          v_settled_at, v_unlock_at, p_worker
        from next n where n.wait_ms is not null limit v_turn.share
      )
      select 'leased', null::bigint, l.id, coalesce(l.channel_name, v_turn.name), l.token, l.attempt,
        coalesce(l.max_attempts, v_turn.max_attempts), l.suspicion, l.dequeue_at, l.created_at, v_settled_at,
        v_unlock_at, case when l.fits then l.key end, case when l.fits then null else l.bytes end,
        case when l.fits then l.content end, case when l.fits then l.state end, case when l.fits then l.headers end
      from (
        -- If the contents are too large together, only those that take no more than an equal share of the reply fit.
        select n.*, n.bytes <= (
          select case when sum(g.bytes) <= v_content_bytes then v_content_bytes else v_content_bytes / count(*) end
          from (select n.bytes from next n where n.wait_ms is not null limit v_turn.share) g
        ) as fits
        from next n where n.wait_ms is not null limit v_turn.share
      ) l;
      get diagnostics v_count = row_count;
      v_left := v_left - v_count;
      exit when v_count > 0;  -- no other turn was due
    end if;

    -- 6. If several are locked: choose their messages and write the turns, then lease the messages.
    if v_turns is not null and v_turn.tid is null then
      v_settlement := message_settle(v_turns, v_left, v_row_bytes, v_wake_id, v_quantum, v_returns_first);
      v_hints.min_return_at := least(v_hints.min_return_at, v_settlement.min_return_at);
      if v_settlement.messages is not null then
        return query
        with leased as materialized (
          select message_bytes(m.key, m.content, m.state, m.headers) as bytes, m.id, m.channel_id,
            lease_token(v_settlement.settled_at) as token,
            m.attempts + 1 as attempt, u.turn_ordinal, m.dequeue_at, m.created_at, m.suspicion, m.max_attempts,
            m.channel_name, m.key, m.content, m.state, m.headers
          from unnest(v_settlement.messages, v_settlement.ids, v_settlement.turn_ordinals) u(tid, id, turn_ordinal)
          -- Not "=": while the planner believes that the table is empty, it would join by id and read the whole index.
          join message m on m.ctid = u.tid and m.id is not distinct from u.id
        ),
        inserted as (
          insert into lease (message_id, channel_id, token, attempt, is_capped, is_shared, leased_at, unlock_at, worker)
          select l.id, l.channel_id, l.token, l.attempt, v_settlement.are_capped[l.turn_ordinal],
            p_is_shared is true, v_settlement.settled_at, v_settlement.settled_at + p_lease_ms * 1000, p_worker
          from leased l
        )
        select 'leased', null::bigint, l.id, coalesce(l.channel_name, v_settlement.names[l.turn_ordinal]), l.token,
          l.attempt, coalesce(l.max_attempts, v_settlement.max_attempts[l.turn_ordinal]), l.suspicion,
          l.dequeue_at, l.created_at, v_settlement.settled_at, v_settlement.settled_at + p_lease_ms * 1000,
          case when l.fits then l.key end,
          case when l.fits then null else l.bytes end, case when l.fits then l.content end,
          case when l.fits then l.state end, case when l.fits then l.headers end
        from (
          select l.*, l.bytes <= (
            select case when sum(l.bytes) <= v_content_bytes then v_content_bytes else v_content_bytes / count(*) end
            from leased l
          ) as fits
          from leased l
        ) l;
        get diagnostics v_count = row_count;
        if v_count < cardinality(v_settlement.messages) then
          -- Some were cancelled after they were chosen: the next round chooses others.
          perform turn_refund(v_settlement);
        end if;
        if v_count > 0 then
          v_left := v_left - v_count;
          -- Little is left for the contents of another round, which is rare.
          v_content_bytes := 1000;
          v_row_bytes := v_row_bytes - v_count * (110 + v_settlement.name_bytes);
          exit when v_left = 0 or v_settlement.is_reply_full;
        end if;
      end if;
    end if;

    -- 7. Decide whether another round follows.
    v_now := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
    v_is_full_scan := false;
    if v_turns is null
        and (v_left < c_limit or (v_hints.soon).lowest_id is null and (v_hints.bulk).lowest_id is null) then
      exit when v_left < c_limit;
      -- Nothing was found. If other calls hold what is due, reply 'busy', and begin with that next time. Otherwise make
      -- a full scan before the reply 'empty', unless an expensive scan has just run.
      v_first_next_at := (
        select t.next_at from turn t where t.next_at <= v_now and t.next_at >= v_min_next_at order by t.next_at limit 1
      );
      v_is_busy := v_is_busy or v_first_next_at is not null;
      v_hints.min_next_at := least(v_hints.min_next_at, v_first_next_at);
      exit when v_is_busy or v_has_scanned
        or v_hints.full_scan_us > 10000 and v_now - v_hints.full_scan_at < 2 * v_hints.full_scan_us;
      v_is_full_scan := true;
      v_has_scanned := true;
    end if;
  end loop;

  -- 8. If nothing was leased, say when to ask again.
  if v_left = c_limit then
    -- After eight rounds there may still be turns or wakes to look at.
    v_is_busy := v_is_busy or v_turns is not null or (v_hints.soon).lowest_id is not null
      or (v_hints.bulk).lowest_id is not null;
    select r.outcome, r.wait_ms into outcome, wait_ms
    from dequeue_retry_after(v_hints, v_now, v_is_busy, v_has_scanned, v_next_scan_at) r;
    return next;
  end if;
  v_setting := set_config(c_setting, v_hints::text, false);
end
$$;
