-- message_give_back: end leases unworked (a worker shuts down): the messages keep their place and their attempts.
-- Returns per message, in the order given: 'given_back', or as message_complete.
-- Locks:  its own leases and messages, skipping locked ones.
-- Writes: lease (delete), wake (insert).
create or replace function message_give_back(p_ids bigint[], p_tokens bigint[])
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
  v_leases tid[];
  v_messages tid[];
  v_ordinals integer[];
  v_outcomes text[];
  v_count bigint;
begin
  select * into v_leases, v_messages, v_ordinals, v_outcomes from lease_hold(p_ids, p_tokens, true);
  if v_leases is not null then
    with ended as (
      delete from lease l where l.ctid = any(v_leases) returning l.channel_id, l.is_capped
    ),
    changes as (
      select e.channel_id, e.is_capped::integer as done, 0 as waiting, null::bigint as id, null::bigint as at from ended e
      union all
      select m.channel_id, 0, 1, m.id, m.dequeue_at from message m where m.ctid = any(v_messages)
    ),
    woken as (
      insert into wake (channel_id, at, message_id, to_at, to_id, done, waiting)
      select c.channel_id, min(c.at), min(c.id), max(c.at), max(c.id), sum(c.done), sum(c.waiting) from changes c group by c.channel_id
    )
    select count(*) into v_count from ended e;
    if v_count <> cardinality(v_leases) then
      perform reject('ids', 'repeated ids', 'without repetition');
    end if;
    perform sleepers_notify();
  end if;
  return query
  select u.id, coalesce(v_outcomes[u.ordinal], 'given_back') from unnest(p_ids) with ordinality u(id, ordinal);
end
$$;
