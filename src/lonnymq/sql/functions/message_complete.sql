-- message_complete: end the life of messages whose work is done.
-- Returns per message, in the order given: 'completed', or 'lease_lost' (a later attempt owns it, or it ended),
-- 'cancelled' (it was cancelled meanwhile), 'busy' (locked by another transaction: ask again).
-- Locks:  its own leases and messages, skipping locked ones.
-- Writes: lease, message (delete), wake, history (insert).
create or replace function message_complete(p_ids bigint[], p_tokens bigint[])
returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_leases tid[];
  v_messages tid[];
  v_ordinals integer[];
  v_outcomes text[];
  v_count bigint;
  v_has_cap boolean;
begin
  select * into v_leases, v_messages, v_ordinals, v_outcomes from lease_hold(p_ids, p_tokens, true);
  if v_leases is not null then
    perform history_record(v_leases, v_messages, 'completed', null);
    -- A channel without a cap is not waiting for this: its wake stays out of everybody's way (lane 2).
    with ended as (
      delete from lease l where l.ctid = any(v_leases) returning l.channel_id
    ),
    gone as (
      delete from message m where m.ctid = any(v_messages)
    ),
    woken as (
      insert into wake (lane, channel_id, done, made)
      select case when (select c.max_concurrency from channel c where c.id = e.channel_id) is null then 2 else 0 end,
        e.channel_id, count(*), -count(*)
      from ended e
      group by e.channel_id
      returning done, lane
    )
    select sum(w.done), bool_or(w.lane = 0) into v_count, v_has_cap from woken w;
    if v_count <> cardinality(v_leases) then
      perform reject('ids', 'repeated ids', 'without repetition');
    end if;
    if v_has_cap then
      perform sleepers_notify();
    end if;
  end if;
  return query
  select u.id, coalesce(v_outcomes[u.ordinal], 'completed')
  from unnest(p_ids) with ordinality u(id, ordinal);
end
$$;
