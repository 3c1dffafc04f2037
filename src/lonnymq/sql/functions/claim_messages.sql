-- claim_messages: the messages of a claim whose leases are still held, in the order to process them. Extends these
-- leases until p_lease_ms from now. Returns nothing if the claim is done or unknown: then its messages are completed,
-- or wait again.
-- Locks:  as message_heartbeat.
-- Writes: lease, claim.
create or replace function claim_messages(p_claim uuid, p_lease_ms bigint)
returns table (message_id bigint, token bigint)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_tokens bigint[];
begin
  update claim c set kept_at = now() where c.id = p_claim and not c.is_done
  returning c.message_ids, c.tokens into v_ids, v_tokens;
  return query
  select u.id, u.token
  from message_heartbeat(coalesce(v_ids, '{}'), coalesce(v_tokens, '{}'), p_lease_ms) with ordinality
    h(message_id, outcome, ordinal)
  join unnest(v_ids, v_tokens) with ordinality u(id, token, ordinal) on u.ordinal = h.ordinal
  where h.outcome in ('extended', 'busy')
  order by u.ordinal;
end
$$;
