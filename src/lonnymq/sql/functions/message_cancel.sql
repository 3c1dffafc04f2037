-- message_cancel: delete messages, waiting or leased. The worker of a leased one is told at its next heartbeat or
-- acknowledgement.
-- Returns per message, in the order given: 'cancelled', 'busy' (another transaction has it locked: ask again), or
-- 'unknown'.
-- Locks:  the messages, skipping locked ones.
-- Writes: message (delete), wake, history, result (insert).
create or replace function message_cancel(p_ids bigint[]) returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_messages tid[];
  v_gone bigint[];
  v_keep_ms bigint[];
begin
  if p_ids is null then
    perform reject('ids', null, 'an array');
  end if;
  perform require_read_committed('message_cancel');
  select array_agg(s.ctid) into v_messages from (
    select m.ctid from message m where m.id = any(p_ids) for update skip locked
  ) s;
  perform history_record(null, v_messages, 'cancelled', null);
  with gone as (
    delete from message m where m.ctid = any(v_messages) returning m.id, m.channel_id, m.headers
  ),
  woken as (
    insert into wake (lane, channel_id, waiting) select 2, g.channel_id, -count(*) from gone g group by g.channel_id
  )
  select array_agg(g.id), array_agg(result_keep_ms(g.headers)) into v_gone, v_keep_ms from gone g;
  if cardinality(array_remove(v_keep_ms, null)) > 0 then
    perform result_insert(v_gone, v_keep_ms, 'cancelled');
  end if;
  return query
  select u.id, case when u.id = any(v_gone) then 'cancelled'
    when (select true from message m where m.id = u.id) then 'busy' else 'unknown' end
  from unnest(p_ids) with ordinality u(id, ordinal)
  order by u.ordinal;
end
$$;
