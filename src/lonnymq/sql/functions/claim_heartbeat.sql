-- claim_heartbeat: extend all leases of a claim until p_lease_ms from now.
-- Returns how many are held, and how many no longer are (lost or cancelled).
-- Locks:  as message_heartbeat.
-- Writes: lease.
create or replace function claim_heartbeat(p_claim uuid, p_lease_ms bigint, out held bigint, out lost bigint)
language plpgsql security definer
set search_path from current
as $$
declare
  v_ids bigint[];
  v_tokens bigint[];
begin
  select c.message_ids, c.tokens into v_ids, v_tokens from claim c where c.id = p_claim and not c.is_done;
  select count(*) filter (where h.outcome in ('extended', 'busy')),
    count(*) filter (where h.outcome not in ('extended', 'busy'))
  into held, lost
  from message_heartbeat(coalesce(v_ids, '{}'), coalesce(v_tokens, '{}'), p_lease_ms) h;
end
$$;
