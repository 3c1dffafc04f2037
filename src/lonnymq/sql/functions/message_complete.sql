-- message_complete: end the life of messages whose work is done.
-- Returns per message, in the order given: 'completed', or 'lease_lost' (a later attempt owns it, or it ended),
-- 'cancelled' (it was cancelled meanwhile), 'busy' (locked by another transaction: ask again).
-- It first tries to delete at once; whoever has a lease locked is the same worker's heartbeat and about to commit. If
-- that takes longer than a blink, it starts again and passes over what is locked.
-- Locks:  its own leases and messages.
-- Writes: lease, message (delete), wake, history (insert).
create or replace function message_complete(p_ids bigint[], p_tokens bigint[])
returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
set enable_seqscan = off
set enable_indexscan = on
set enable_tidscan = on
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  c_lock_timeout constant text := current_setting('lock_timeout');
  v_count constant integer := cardinality(p_ids);
  v_setting text;
  v_leases tid[];
  v_messages tid[];
  v_outcomes text[];
  v_ended bigint[];
  v_tokens bigint[];
  v_channel_ids bigint[];
  v_gone bigint[];
  v_capped bigint[];
begin
  if p_ids is null or p_tokens is null or v_count <> cardinality(p_tokens) or v_count > 10000
      or current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform lease_hold(p_ids, p_tokens, false);
  end if;
  if (select s.history = 'off' from setting s where s.is_only) then
    begin
      v_setting := set_config('lock_timeout', '2ms', true);
      with ended as (
        delete from lease l
        where l.ctid = any(array(
          select o.ctid from unnest(p_ids, p_tokens) u(id, token)
          cross join lateral (select l.ctid from lease l where l.message_id = u.id and l.token = u.token offset 0) o
        ))
        returning l.message_id, l.token, l.channel_id, l.is_capped
      ),
      gone as (
        delete from message m where m.id = any(array(select e.message_id from ended e)) returning m.id
      )
      select e.ids, e.tokens, e.channel_ids, e.capped, (select array_agg(g.id) from gone g)
      into v_ended, v_tokens, v_channel_ids, v_capped, v_gone
      from (
        select array_agg(e.message_id) as ids, array_agg(e.token) as tokens, array_agg(e.channel_id) as channel_ids,
          array_agg(e.channel_id) filter (where e.is_capped) as capped
        from ended e
      ) e;
      v_setting := set_config('lock_timeout', c_lock_timeout, true);
    exception when lock_not_available then
      v_ended := null;
      v_leases := '{}';
    end;
  else
    v_leases := '{}';
  end if;
  if v_leases is not null then
    select h.leases, h.messages, h.outcomes into v_leases, v_messages, v_outcomes from lease_hold(p_ids, p_tokens, true) h;
    if v_leases is not null then
      perform history_record(v_leases, v_messages, 'completed', null);
      with ended as (
        delete from lease l where l.ctid = any(v_leases) returning l.message_id, l.token, l.channel_id, l.is_capped
      ),
      gone as (
        delete from message m where m.ctid = any(v_messages)
      )
      select array_agg(e.message_id), array_agg(e.token), array_agg(e.channel_id) filter (where e.is_capped)
      into v_ended, v_tokens, v_capped
      from ended e;
      v_gone := v_ended;
      if cardinality(v_ended) <> cardinality(v_leases) then
        perform reject('ids', 'repeated ids', 'without repetition');
      end if;
    end if;
  end if;
  if v_capped is not null then
    insert into wake (channel_id, done) select u.id, count(*) from unnest(v_capped) u(id) group by u.id;
    perform sleepers_notify();
  end if;
  if cardinality(v_gone) = v_count then
    return query select u.id, 'completed' from unnest(p_ids) u(id);
    return;
  end if;
  if cardinality(v_ended) > coalesce(cardinality(v_gone), 0) then
    -- Cancelled while they were worked: a lease less, and no message to it.
    insert into wake (lane, channel_id, waiting)
    select 2, u.channel_id, count(*) from unnest(v_ended, v_channel_ids) u(id, channel_id)
    where u.id <> all(coalesce(v_gone, '{}')) group by u.channel_id;
  end if;
  return query
  select u.id, case when e.id is null then coalesce(v_outcomes[u.ordinal], 'lease_lost')
    when u.id = any(v_gone) then 'completed' else 'cancelled' end
  from unnest(p_ids, p_tokens) with ordinality u(id, token, ordinal)
  left join unnest(v_ended, v_tokens) e(id, token) on e.id = u.id and e.token = u.token
  order by u.ordinal;
end
$$;
