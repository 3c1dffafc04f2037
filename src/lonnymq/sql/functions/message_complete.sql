-- message_complete: delete messages whose work is done, and their leases.
-- Returns per message, in the order given: 'completed', or 'lease_lost' (the lease has ended or belongs to another
-- attempt), 'cancelled' (the message was cancelled), 'busy' (another transaction has it locked: ask again).
-- p_results has a result per message, which is kept if the producer asked for it (see result_keep_ms). A null is
-- kept, too: then only the outcome is known. It first tries to delete all of them at once, and waits up to 2 ms for
-- a lock, which is enough for a heartbeat of the same worker to commit. If that fails, or a row has changed since it
-- was read, it starts over and skips locked rows.
-- Locks:  its own leases and messages.
-- Writes: lease, message (delete), wake, history, result (insert).
create or replace function message_complete(p_ids bigint[], p_tokens bigint[], p_results bytea[] default null)
returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  c_lock_timeout constant text := current_setting('lock_timeout');
  v_count constant integer := cardinality(p_ids);
  v_leases tid[];
  v_messages tid[];
  v_capped bigint[];        -- channels whose cap has room again, once per lease
  v_has_history boolean;
  v_outcomes text[];
  v_ended bigint;
  v_removed bigint;
  v_setting text;
  v_is_locked boolean := false;
  v_keep_ms bigint[];
begin
  if p_ids is null or p_tokens is null or v_count <> cardinality(p_tokens) or v_count > 10000
      or current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform lease_lock(p_ids, p_tokens, false);
  end if;
  if p_results is not null then
    perform require_results(p_results, v_count);
    select array_agg(result_keep_ms(m.headers) order by u.ordinal) into v_keep_ms
    from unnest(p_ids) with ordinality u(id, ordinal)
    left join lateral (select m.headers from message m where m.id = u.id offset 0) m on true;
  end if;
  select array_agg(l.ctid), array_agg(m.ctid), array_agg(l.channel_id) filter (where l.is_capped),
    (select s.history <> 'off' from setting s where s.is_only)
  into v_leases, v_messages, v_capped, v_has_history
  from (select unnest(p_ids) as id, unnest(p_tokens) as token) u
  cross join lateral (
    select l.ctid, l.channel_id, l.is_capped from lease l where l.message_id = u.id and l.token = u.token offset 0
  ) l
  cross join lateral (select m.ctid from message m where m.id = u.id offset 0) m;
  loop
    if v_is_locked or cardinality(v_leases) is distinct from v_count then
      select k.leases, k.messages, k.outcomes into v_leases, v_messages, v_outcomes
      from lease_lock(p_ids, p_tokens, true) k;
      select array_agg(l.channel_id) filter (where l.is_capped) into v_capped from lease l where l.ctid = any(v_leases);
      v_is_locked := true;
    end if;
    exit when v_leases is null;
    begin
      if not v_is_locked then
        v_setting := set_config('lock_timeout', '2ms', true);
      end if;
      if v_has_history then
        perform history_record(v_leases, v_messages, 'completed', null);
      end if;
      delete from lease l where l.ctid = any(v_leases);
      get diagnostics v_ended = row_count;
      delete from message m where m.ctid = any(v_messages);
      get diagnostics v_removed = row_count;
      if least(v_ended, v_removed) <> cardinality(v_leases) then
        if v_is_locked then
          perform reject('ids', 'repeated ids', 'distinct');
        end if;
        raise lock_not_available;
      end if;
      v_setting := set_config('lock_timeout', c_lock_timeout, true);
      exit;
    exception when lock_not_available then
      if v_is_locked then
        raise;
      end if;
      v_is_locked := true;
    end;
  end loop;
  if v_capped is not null then
    insert into wake (channel_id, done) select u.id, count(*) from unnest(v_capped) u(id) group by u.id;
    perform sleepers_notify();
  end if;
  if v_keep_ms is not null then
    perform result_insert(
      -- Not p_ids[ordinal]: a caller's array may begin at another index, or have more dimensions.
      array(
        select case when v_outcomes[u.ordinal] is null then u.id end
        from unnest(p_ids) with ordinality u(id, ordinal) order by u.ordinal
      ),
      v_keep_ms, 'completed', p_results
    );
  end if;
  if v_outcomes is null then
    return query select unnest(p_ids), 'completed';
  else
    return query
    select u.id, coalesce(v_outcomes[u.ordinal], 'completed') from unnest(p_ids) with ordinality u(id, ordinal);
  end if;
end
$$;
