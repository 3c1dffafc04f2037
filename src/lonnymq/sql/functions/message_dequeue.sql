-- message_dequeue: lease up to p_limit messages for p_lease_ms to p_worker, fairly, within caps and rate limits.
-- Returns one row per message, 'leased', in the order to work them; fewer than p_limit where the reply would grow too
-- large. key, content and state are null where they would make it too large; unread_bytes is their size then: read those with
-- message_read. If there is no message, one row says 'empty', or 'busy' (others hold what is due, or there is more to
-- look at), with the milliseconds after which asking again makes sense.
-- p_is_durable false: this transaction's commit does not wait for the disk. Right if it does nothing but dequeue,
-- since a lease lost in a crash is only a redelivery.
-- p_is_shared true: the caller works several messages in one process, so that the loss of a lease need not be its own
-- message's fault (see lease_expire). suspicion tells how often that has happened to a message; at 2 or more it should be
-- worked alone, which message_heartbeat then says.
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
set enable_seqscan = off
set enable_indexscan = on
set enable_tidscan = on
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set enable_sort = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  -- A reply must fit the socket's buffers: a client that stops reading would hold its turns' locks.
  c_limit constant integer := least(p_limit, 500);
  c_lowest constant bigint := -9223372036854775808;
  -- What this session remembers between calls. Hints only: a full look starts without them. A role or a database may
  -- have a default for any setting; ours ends with the id of this process, which no default knows.
  c_hints constant text := 'lonnymq.hints_1_' || 'turn'::regclass::oid;
  v_setting text := current_setting(c_hints, true);
  v_hints bigint[] := case when v_setting like '%,' || pg_backend_pid() then string_to_array(v_setting, ',', '-')::bigint[] end;
  v_now bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_full_at bigint := v_hints[1];       -- when everything was last looked at from the start,
  v_full_cost bigint := v_hints[2];     -- and how long that took
  v_turn bigint := v_hints[3];          -- no turn that is due has a lower next_at
  v_sweep_at bigint := case when v_now >= v_full_at then v_hints[4] end;  -- when to look for stamps from the future
  v_cursors bigint[] := coalesce(v_hints[5:6], '{0,0}');   -- where to go on reading the wakes of lane 0 and 1,
  v_lows bigint[] := coalesce(v_hints[7:8], array[null, null]::bigint[]);  -- and the lowest of this pass; null at its end
  v_ends bigint[] := coalesce(v_hints[9:10], array[null, null]::bigint[]);  -- and where this pass ends, whatever is added meanwhile
  v_rewind bigint[] := coalesce(v_hints[11:13], array[null, null, null]::bigint[]);  -- where to go on with message_rewind

  v_left integer := c_limit;
  v_content_bytes bigint := 33000;      -- what is left of the reply for contents,
  v_row_bytes bigint := 60000;          -- and for the rest
  v_next_full_at bigint := v_full_at + least(greatest(40 * v_full_cost, 2000), 5000000);
  v_is_full boolean := v_hints is null or v_now < v_full_at or v_now >= v_next_full_at;
  v_was_full boolean := v_is_full;
  v_is_busy boolean := false;
  v_has_born boolean := false;
  v_is_more boolean := false;
  v_looked_at bigint;
  v_is_end boolean;
  v_window integer := 256 + 2 * c_limit;
  v_channels bigint[];
  v_woken bigint[];
  v_firsts bigint[];
  v_turns tid[];
  v_found tid[];
  v_at bigint;
  v_min bigint;
  v_low bigint;   -- no turn that woke will have a lower next_at
  v_wake bigint;  -- the lowest wake found
  v_end bigint;   -- the last wake there was when a full look began
  v_count bigint;
  v_settled record;
  v_due_at bigint;
begin
  -- Asked here, so that a call that is right does not pay for another.
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
    v_wake := null;
    if v_is_full then
      v_full_at := v_now;
      v_looked_at := v_now;
      v_turn := c_lowest;
      v_end := (select last_value from wake_id_seq);
      -- A pass over the wakes that has not reached their end goes on, so that none can hide the others for good.
      v_cursors := array[case when v_lows[1] is null then 0 else v_cursors[1] end,
        case when v_lows[2] is null then 0 else v_cursors[2] end];
      if exists (select from lease l where l.unlock_at <= v_now order by l.unlock_at limit 1) then
        -- Ending leases is work and no part of what looking costs.
        v_is_more := lease_expire(v_now);
        v_looked_at := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
      end if;
      if v_sweep_at is null or v_now >= v_sweep_at then
        select s.sweep_at, s.cursor into v_sweep_at, v_rewind from turn_sweep(v_now, v_rewind) s;
        v_wake := 0;
      end if;
    end if;

    -- Find the channels that woke, as long as there is nothing to lease, or at the first look.
    if v_round = 1 or v_is_full or v_left = c_limit and (v_lows[1] is not null or v_lows[2] is not null) then
      v_channels := null;
      for v_lane in 1..2 loop
        continue when v_lane = 2 and not v_is_full and v_lows[2] is null;
        -- A window that few channels fill may hide others behind it: read on.
        for v_try in 1..6 loop
          select array_agg(s.channel_id), array_agg(s.id), least(v_at, min(coalesce(s.at, -9000000000000000)))
          into v_woken, v_firsts, v_at
          from (
            select id, channel_id, at from wake
            where lane = v_lane - 1 and id >= v_cursors[v_lane]
            order by lane, id limit v_window << (v_try - 1)
          ) s;
          v_count := cardinality(v_woken);
          v_min := v_firsts[v_count];
          if v_count > 1 then
            select array_agg(g.id order by g.first), array_agg(g.first order by g.first) into v_woken, v_firsts
            from (select u.id, min(u.first) as first from unnest(v_woken, v_firsts) u(id, first) group by u.id) g;
          end if;
          exit when v_count is null or v_count < v_window << (v_try - 1) or cardinality(v_woken) > c_limit;
        end loop;
        if v_woken is null then
          -- The end of the pass.
          v_cursors[v_lane] := coalesce(v_lows[v_lane] - 64, v_end - 64, v_cursors[v_lane]);
          v_lows[v_lane] := null;
          v_ends[v_lane] := null;
          continue;
        end if;
        v_lows[v_lane] := least(v_lows[v_lane], v_firsts[1]);
        v_wake := least(v_wake, v_firsts[1]);
        if cardinality(v_woken) > c_limit + 8 then
          v_cursors[v_lane] := v_firsts[c_limit + 9];
          v_woken := v_woken[1:c_limit + 8];
          v_is_end := false;
        else
          v_cursors[v_lane] := v_min + 1;
          v_is_end := v_count < v_window;
        end if;
        if v_is_end or v_cursors[v_lane] > v_ends[v_lane] then
          -- The end of the pass. After a long one, what was passed over meanwhile is looked at first.
          v_cursors[v_lane] := case when v_ends[v_lane] is null then v_lows[v_lane] - 64 else 0 end;
          v_lows[v_lane] := null;
          v_ends[v_lane] := null;
        elsif v_ends[v_lane] is null then
          v_ends[v_lane] := (select last_value from wake_id_seq);
        end if;
        v_channels := case when v_channels is null then v_woken
          else array(select distinct u from unnest(v_channels || v_woken) u) end;
      end loop;
      v_window := v_window * 2;

      -- Lock their turns: find the newest version first, then lock that place, so that nobody walks over dead ones.
      if v_channels is not null then
        select array_agg(s.ctid), min(greatest(s.last_at, v_at * 1000)) into v_turns, v_low
        from (
          select ctid, last_at from turn
          where ctid = any(array(
            select (select t.ctid from turn t where t.channel_id = c.id order by t.version desc limit 1)
            from unnest(v_channels) c(id)
          ))
          for update skip locked
        ) s;
        if coalesce(cardinality(v_turns), 0) < cardinality(v_channels) then
          -- Once in a call, because births take locks.
          v_found := case when not v_has_born then turn_birth(v_channels) end;
          if v_found is not null then
            v_has_born := true;
            if cardinality(v_found) = 128 and v_lows[2] is null then
              -- There may be more births in the bulk lane than one call makes: pass over it once more.
              v_lows[2] := v_cursors[2];
            end if;
            v_turns := coalesce(v_turns, '{}') || v_found;
            v_low := 0;
          end if;
          v_is_busy := v_is_busy or coalesce(cardinality(v_turns), 0) < cardinality(v_channels);
        end if;
      end if;
    end if;

    -- Lock the turns that are due, least recently served first.
    select array_agg(s.ctid), min(s.next_at) into v_found, v_min
    from (
      select ctid, next_at from turn
      where next_at <= v_now and next_at >= v_turn
      order by next_at limit v_left for update skip locked
    ) s;
    v_turn := least(coalesce(v_min, v_now), v_low);
    if v_turns is null then
      v_turns := v_found;
    elsif v_found is not null then
      v_turns := array(select distinct u from unnest(v_turns || v_found) u);
    end if;
    if v_is_full then
      -- A session's first look also plans its statements: that says nothing. If more leases have ended, look again soon.
      v_full_cost := case when v_hints is null or v_is_more then 0
        else (extract(epoch from clock_timestamp()) * 1000000)::bigint - v_looked_at end;
    end if;

    -- Settle what is locked, in statements that see what the locks protect; then lease each turn's next messages.
    if cardinality(v_turns) = 1 then
      v_settled := message_settle_one(v_turns[1], v_left, v_row_bytes, v_wake);
      if v_settled.messages is not null then
        return query
        with leased as materialized (
          select m.*,
            -- Never issued twice: random, and of this microsecond.
            (random() * 4611686018427387904)::bigint # v_settled.settled_at as token,
            octet_length(m.content) + coalesce(octet_length(m.state), 0) + coalesce(octet_length(m.key), 0) as bytes
          from unnest(v_settled.messages, v_settled.ids) u(tid, id)
          -- Not "=": for a join by id, a planner that believes the table empty reads the whole index.
          join message m on m.ctid = u.tid and m.id is not distinct from u.id
        ),
        inserted as (
          insert into lease (message_id, channel_id, token, attempt, is_capped, is_shared, leased_at, unlock_at, worker)
          select l.id, l.channel_id, l.token, l.attempts + 1, v_settled.is_capped, p_is_shared is true,
            v_settled.settled_at, v_settled.settled_at + p_lease_ms * 1000, p_worker
          from leased l
        )
        select 'leased', null::bigint, l.id, coalesce(l.channel_name, v_settled.name), l.token, l.attempts + 1,
          coalesce(l.max_attempts, v_settled.max_attempts), l.suspicion, l.dequeue_at, l.created_at,
          v_settled.settled_at, v_settled.settled_at + p_lease_ms * 1000, case when l.fits then l.key end,
          case when l.fits then null else l.bytes end, case when l.fits then l.content end, case when l.fits then l.state end
        from (
          select l.*, l.bytes <= (
            select case when sum(l.bytes) <= v_content_bytes then v_content_bytes else v_content_bytes / count(*) end from leased l
          ) as fits
          from leased l
        ) l;
        get diagnostics v_count = row_count;
        if v_count < cardinality(v_settled.messages) then
          -- Some were cancelled between the choice and the lease: the next round chooses again.
          perform turn_refund(v_settled.channel_id, cardinality(v_settled.messages) - v_count, v_settled.is_capped,
            v_settled.interval_us, v_settled.settled_at);
        end if;
      else
        v_count := 0;
      end if;
    elsif v_turns is not null then
      v_settled := message_settle(v_turns, v_left, v_row_bytes, v_wake);
      return query
      with given as materialized (
        -- One more than its share, to know what comes next: first those that came late, below the mark, then those past it.
        select u.*, m.ids, m.ats, m.tids, m.late_count, least(m.due_count, coalesce(u.share, 0))::integer as given
        from unnest(v_settled.tids, v_settled.turns, v_settled.names, v_settled.weights, v_settled.shares,
          v_settled.takens, v_settled.served_at, v_settled.free, v_settled.intervals, v_settled.spares, v_settled.max_attempts) with ordinality u(
          tid, channel_id, version, due_at, last_at, release_at, mark_at, mark_id, late_at, late_id, late_to, late_to_id,
          in_flight, waiting, has_uncapped, wake_id, had, name, weight, share, taken, served_at, free, interval_us, spare_us,
          max_attempts, place)
        cross join lateral (
          select array_agg(n.id) as ids, array_agg(n.dequeue_at) as ats, array_agg(n.tid) as tids,
            count(*) filter (where n.is_late) as late_count,
            count(*) filter (where n.dequeue_at * 1000 <= v_settled.settled_at) as due_count
          from (
            (
              select l.id, l.dequeue_at, l.tid, true as is_late
              from message_late(u.channel_id, u.late_at, u.late_id, u.late_to, u.late_to_id, u.mark_at, u.mark_id,
                case when u.late_at is not null and u.share > 0 then u.share + 1 else 0 end) l
            )
            union all
            (
              select m.id, m.dequeue_at, m.ctid as tid, false as is_late
              from message m
              where m.channel_id = u.channel_id and (m.dequeue_at, m.id + 0) > (u.mark_at, u.mark_id)
              order by m.channel_id, m.dequeue_at, m.id + 0
              limit case when u.share > 0 then u.share + 1 else 0 end
            )
            limit case when u.share > 0 then u.share + 1 else 0 end
          ) n
        ) m
      ),
      updated as (
        update turn t set
          version = t.version + 1,
          next_at = case
            -- Full. A completion's wake brings it back, except those that nobody reports.
            when g.free <= g.given then case when g.has_uncapped then v_settled.settled_at + 200000 end
            when g.share > 0 and g.ats[g.given + 1] is null or g.due_at is null then null
            else greatest(case when g.share > 0 then g.ats[g.given + 1] * 1000 else g.due_at end,
              case when g.given > 0 then g.served_at end,
              -- Who could have had one and had none keeps his place.
              case when g.given > 0 or g.release_at - g.spare_us > v_settled.settled_at
                then g.release_at + g.given * g.interval_us - g.spare_us end)
          end,
          last_at = case when g.given > 0 then greatest(g.served_at, g.last_at) else g.last_at end,
          release_at = coalesce(g.release_at + g.given * g.interval_us, 0),
          mark_at = case when g.given > g.late_count then g.ats[g.given] else g.mark_at end,
          mark_id = case when g.given > g.late_count then g.ids[g.given] else g.mark_id end,
          late_at = case when g.share > 0 and g.given >= g.late_count then null when g.given > 0 then g.ats[g.given] else g.late_at end,
          late_id = case when g.share > 0 and g.given >= g.late_count then null when g.given > 0 then g.ids[g.given] else g.late_id end,
          late_to = case when g.share > 0 and g.given >= g.late_count then null else g.late_to end,
          late_to_id = case when g.share > 0 and g.given >= g.late_count then null else g.late_to_id end,
          in_flight = g.in_flight + case when g.free is null then 0 else g.given end,
          waiting = g.waiting - g.given,
          wake_id = g.wake_id,
          has_uncapped = g.has_uncapped or g.free is null and g.given > 0,
          taken = case when g.share > 0 then case when g.given = g.share then g.taken else 0 end else g.had end
        from given g
        where t.ctid = g.tid
      ),
      leased as materialized (
        -- A turn is worked after the others' turn, also within the reply.
        select m.*, coalesce(m.channel_name, g.name) as name, g.free is not null as is_capped,
          coalesce(m.max_attempts, g.max_attempts) as max_attempts_here,
          -- Never issued twice: random, and of this microsecond.
          (random() * 4611686018427387904)::bigint # v_settled.settled_at as token,
          octet_length(m.content) + coalesce(octet_length(m.state), 0) + coalesce(octet_length(m.key), 0) as bytes
        from given g
        cross join lateral unnest(g.tids[1:g.given]) with ordinality p(tid, number)
        join message m on m.ctid = p.tid
        where g.given > 0
        order by (p.number - 1) / g.weight, g.place, p.number
      ),
      inserted as (
        insert into lease (message_id, channel_id, token, attempt, is_capped, is_shared, leased_at, unlock_at, worker)
        select l.id, l.channel_id, l.token, l.attempts + 1, l.is_capped, p_is_shared is true,
          v_settled.settled_at, v_settled.settled_at + p_lease_ms * 1000, p_worker
        from leased l
      )
      select 'leased', null::bigint, l.id, l.name, l.token, l.attempts + 1, l.max_attempts_here, l.suspicion,
        l.dequeue_at, l.created_at, v_settled.settled_at, v_settled.settled_at + p_lease_ms * 1000, case when l.fits then l.key end,
        case when l.fits then null else l.bytes end, case when l.fits then l.content end, case when l.fits then l.state end
      from (
        -- If the contents are too many for the reply, those that take no more than an equal share of it.
        select l.*, l.bytes <= (
          select case when sum(l.bytes) <= v_content_bytes then v_content_bytes else v_content_bytes / count(*) end from leased l
        ) as fits
        from leased l
      ) l;
      get diagnostics v_count = row_count;
      if v_settled.nameless is not null then
        perform channel_keep(v_settled.nameless);
      end if;
      if v_settled.wakes is not null then
        delete from wake w where w.ctid = any(v_settled.wakes);
      end if;
    end if;
    if v_turns is not null and v_count > 0 then
      v_left := v_left - v_count;
      -- Another round is rare: it has a small reply.
      v_content_bytes := 1000;
      v_row_bytes := v_row_bytes - v_count * (110 + v_settled.name_bytes);
      exit when v_left = 0 or v_settled.is_cut;
    end if;

    v_now := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
    v_is_full := false;
    if v_turns is null and (v_left < c_limit or v_lows[1] is null and v_lows[2] is null) then
      exit when v_left < c_limit or v_was_full;
      -- Nothing by the hints. If others hold what is due, say so; if not, look at everything before saying "nothing",
      -- unless that is dear and was just done.
      v_is_busy := v_is_busy or exists (
        select from turn t where t.next_at <= v_now and t.next_at >= v_turn order by t.next_at limit 1
      );
      exit when v_is_busy or v_full_cost > 10000 and v_now - v_full_at < 2 * v_full_cost;
      v_is_full := true;
      v_was_full := true;
    end if;
  end loop;

  if v_left = c_limit then
    if v_turns is not null or v_lows[1] is not null or v_lows[2] is not null then
      -- The rounds were not enough to look at all of it.
      v_is_busy := true;
    elsif v_was_full and not v_is_busy then
      select * into v_is_busy, v_due_at from queue_outlook(v_now);
    elsif not v_is_busy then
      -- Once everything may be looked at again: nobody tells of what another held at the last look and then left.
      v_due_at := least(v_next_full_at, v_full_at + 2 * v_full_cost, (
        select t.next_at from turn t where t.next_at > v_now order by t.next_at limit 1
      ));
    end if;
    outcome := case when v_is_busy then 'busy' else 'empty' end;
    wait_ms := case when v_is_busy then 0 else greatest(0, least(v_due_at - v_now, 60000000) + 999) / 1000 end;
    return next;
  end if;
  v_setting := set_config(c_hints, array_to_string(array[v_full_at, v_full_cost, v_turn, v_sweep_at]
    || v_cursors || v_lows || v_ends || v_rewind || pg_backend_pid()::bigint, ',', '-'), false);
end
$$;
