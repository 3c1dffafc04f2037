-- message_give_back: end leases without an attempt, as when a worker shuts down: the messages keep their place and
-- their number of attempts.
-- Returns per message, in the order given: 'given_back', or as message_complete.
-- Locks:  its own leases and messages, skipping locked ones.
-- Writes: lease (delete), wake (insert).
create or replace function message_give_back(p_ids bigint[], p_tokens bigint[])
returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_leases tid[];
  v_messages tid[];
  v_outcomes text[];
  v_ended integer;
begin
  select k.leases, k.messages, k.outcomes into v_leases, v_messages, v_outcomes
  from lease_lock(p_ids, p_tokens, true) k;
  if v_leases is not null then
    v_ended := lease_end(v_leases, v_messages);
  end if;
  return query
  select u.id, coalesce(v_outcomes[u.ordinal], 'given_back') from unnest(p_ids) with ordinality u(id, ordinal);
end
$$;
