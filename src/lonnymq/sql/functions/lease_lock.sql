-- lease_lock: lock leases by message and token, with their messages, for an acknowledgement.
-- Returns the ctids and the ordinals (positions in p_ids) of those that are now locked, in the order of p_ids. If some
-- could not be locked, outcomes has an element per id: null if it is locked, 'cancelled' if its message is gone, 'busy'
-- if another transaction has it locked (ask again), otherwise 'lease_lost'.
-- Locks:  the leases and their messages, skipping locked ones.
-- Writes: if p_ends_cancelled, lease (delete) and wake (insert) for cancelled messages.
create or replace function lease_lock(
  p_ids bigint[], p_tokens bigint[], p_ends_cancelled boolean,
  out leases tid[], out messages tid[], out ordinals integer[], out outcomes text[]
)
language plpgsql
as $$
declare
  v_orphans tid[];
begin
  if p_ids is null or p_tokens is null then
    perform reject(case when p_ids is null then 'ids' else 'tokens' end, null, 'an array');
  elsif cardinality(p_ids) <> cardinality(p_tokens) then
    perform reject('tokens', cardinality(p_tokens) || ' elements',
      format('an array of %s elements, one per message', cardinality(p_ids)));
  elsif cardinality(p_ids) > 10000 then
    perform reject('ids', cardinality(p_ids) || ' elements', 'at most 10000 elements');
  elsif current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform require_read_committed('acknowledging a message');
  end if;
  select array_agg(s.lease), array_agg(s.message), array_agg(s.ordinal) into leases, messages, ordinals
  from (
    select l.ctid as lease, m.ctid as message, u.ordinal
    from unnest(p_ids, p_tokens) with ordinality u(id, token, ordinal)
    cross join lateral (
      select l.ctid from lease l where l.message_id = u.id and l.token = u.token for update skip locked
    ) l
    cross join lateral (select m.ctid from message m where m.id = u.id for update skip locked) m
  ) s;
  if cardinality(ordinals) = cardinality(p_ids) then
    return;
  end if;

  -- Some are missing: find out why, in a new statement with a new snapshot.
  select array_agg(
    case
      when u.ordinal = any(ordinals) then null
      when l.message_id is null then 'lease_lost'
      when (select true from message m where m.id = u.id) is null then 'cancelled'
      else 'busy'
    end order by u.ordinal),
    array_agg(l.ctid) filter (where l.message_id is not null)
  into outcomes, v_orphans
  from unnest(p_ids, p_tokens) with ordinality u(id, token, ordinal)
  left join lateral (
    select l.ctid, l.message_id from lease l where l.message_id = u.id and l.token = u.token offset 0
  ) l on true;
  if p_ends_cancelled and 'cancelled' = any(outcomes) then
    perform lease_end_cancelled(v_orphans);
  end if;
end
$$;
