-- claim_complete: complete all messages of a claim, and delete the claim before it.
-- Returns 'done' (also if it was done before or is unknown), or 'busy' (another transaction has some messages locked:
-- ask again), and how many leases were lost: their messages are delivered again.
-- Locks:  the claim; as message_complete.
-- Writes: claim, and as message_complete with results.
create or replace function claim_complete(p_claim uuid, out outcome text, out lost integer)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_tokens bigint[];
  v_prev uuid;
begin
  outcome := 'done';
  select c.message_ids, c.tokens, c.prev, c.lost into v_ids, v_tokens, v_prev, lost
  from claim c where c.id = p_claim and not c.is_done for update;
  if v_ids is null then
    lost := coalesce((select c.lost from claim c where c.id = p_claim), 0);
    return;
  end if;
  -- Claims have no results, but a producer that asked for one, or a group, learns that the message has completed.
  select lost + count(*) filter (where h.outcome = 'lease_lost'),
    array_agg(h.message_id) filter (where h.outcome = 'busy'), array_agg(u.token) filter (where h.outcome = 'busy')
  into lost, v_ids, v_tokens
  from message_complete(v_ids, v_tokens, array_fill(null::bytea, array[cardinality(v_ids)]))
    with ordinality h(message_id, outcome, ordinal)
  join unnest(v_ids, v_tokens) with ordinality u(id, token, ordinal) on u.ordinal = h.ordinal;
  if v_ids is not null then
    outcome := 'busy';
  end if;
  update claim c set is_done = v_ids is null, message_ids = coalesce(v_ids, '{}'), tokens = coalesce(v_tokens, '{}'),
    lost = claim_complete.lost, kept_at = now()
  where c.id = p_claim;
  delete from claim c where c.id = v_prev;
end
$$;
