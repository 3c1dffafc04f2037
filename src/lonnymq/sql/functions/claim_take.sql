-- claim_take: lease up to p_limit messages, as message_dequeue does, and record them as one claim that follows p_prev.
-- If there is an uncompleted claim after p_prev, that is taken again instead, with the leases that are still held: its
-- consumer crashed before anybody knew of it. If p_prev is null, such a claim is the consumer's own only if no other
-- consumer uses its name (p_is_alone).
-- Returns the claim and how many messages it has; if there are none, null and the milliseconds after which to ask
-- again. The leases are shared: if the process dies with the batch, no message loses an attempt.
-- Locks:  as message_dequeue; the claim.
-- Writes: claim, and as message_dequeue. The commit waits for the disk, so that a claim that was returned is not lost.
create or replace function claim_take(
  p_prev uuid, p_consumer text, p_is_alone boolean, p_limit integer, p_lease_ms bigint,
  out claim uuid, out messages integer, out wait_ms bigint
)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_ids bigint[] := '{}';
  v_tokens bigint[] := '{}';
  v_found_ids bigint[];
  v_found_tokens bigint[];
  v_open record;
begin
  if p_consumer is null or length(p_consumer) not between 1 and 255 then
    perform reject('consumer', p_consumer, '1 to 255 characters');
  elsif p_limit is null or p_limit not between 1 and 10000 then
    perform reject('limit', p_limit::text, 'between 1 and 10000');
  end if;
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  for v_open in
    select c.id, c.message_ids, c.tokens from claim c
    where not c.is_done and (
      c.prev = p_prev or p_prev is null and c.prev is null and p_is_alone and c.consumer = p_consumer
    )
    order by c.claimed_at for update
  loop
    select array_agg(h.message_id order by u.ordinal), array_agg(u.token order by u.ordinal) into v_ids, v_tokens
    from unnest(v_open.message_ids, v_open.tokens) with ordinality u(id, token, ordinal)
    join message_heartbeat(v_open.message_ids, v_open.tokens, p_lease_ms) h on h.message_id = u.id
    where h.outcome in ('extended', 'busy');
    if v_ids is null then
      delete from claim c where c.id = v_open.id;
    else
      update claim c set message_ids = v_ids, tokens = v_tokens, kept_at = now() where c.id = v_open.id;
      claim := v_open.id;
      messages := cardinality(v_ids);
      wait_ms := 0;
      return;
    end if;
  end loop;
  v_ids := '{}';
  v_tokens := '{}';
  -- A reply of message_dequeue is bounded in rows and in bytes.
  while cardinality(v_ids) < p_limit loop
    select array_agg(d.message_id) filter (where d.message_id is not null), array_agg(d.token), min(d.wait_ms)
    into v_found_ids, v_found_tokens, wait_ms
    from message_dequeue(p_limit - cardinality(v_ids), p_lease_ms, p_consumer, true, true) d;
    exit when v_found_ids is null;
    v_ids := v_ids || v_found_ids;
    v_tokens := v_tokens || v_found_tokens;
  end loop;
  messages := cardinality(v_ids);
  if messages > 0 then
    insert into claim (prev, consumer, message_ids, tokens) values (p_prev, p_consumer, v_ids, v_tokens)
    returning id into claim;
    wait_ms := 0;
    -- Claims of consumers that never returned. Their leases have long expired.
    delete from claim c where c.kept_at < now() - interval '30 days';
  end if;
end
$$;
