-- message_heartbeat: extend leases until p_lease_ms from now.
-- p_is_alone true: from now on each of these is the only message in its process, so that it is to blame if its
-- lease is lost (see lease_expire).
-- p_is_durable false: the commit waits neither for the disk nor for a standby. Right for a transaction that does
-- nothing else, because a message whose extension a crash loses is only delivered again.
-- p_progress: for each message how far its attempt is, from 0 to 1, and p_notes in which step, at most 200 characters;
-- null: as before. message_status_of shows it until the attempt ends.
-- Returns per message, in the order given: 'extended', or as message_complete. A cancelled message keeps its lease,
-- which counts towards its channel's cap, until the worker acknowledges it in any way.
-- Locks:  its own leases and messages, skipping locked ones.
-- Writes: lease.
create or replace function message_heartbeat(
  p_ids bigint[], p_tokens bigint[], p_lease_ms bigint default 30000, p_is_alone boolean default false,
  p_is_durable boolean default true, p_progress real[] default null, p_notes text[] default null
) returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_leases tid[];
  v_ordinals integer[];
  v_outcomes text[];
  v_progress real[];
  v_notes text[];
begin
  if p_lease_ms is null or p_lease_ms not between 1 and 86400000 then
    perform reject('lease_ms', p_lease_ms::text, 'between 1 and 86400000 (24 hours)');
  end if;
  if p_is_durable is false then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  select leases, ordinals, outcomes into v_leases, v_ordinals, v_outcomes from lease_lock(p_ids, p_tokens, false);
  if p_progress is null and p_notes is null then
    update lease l set unlock_at = (extract(epoch from clock_timestamp()) * 1000000)::bigint + p_lease_ms * 1000,
      is_shared = l.is_shared and p_is_alone is not true
    where l.ctid = any(v_leases);
  else
    perform require_progress(p_progress, p_notes, cardinality(p_ids));
    -- The caller's arrays may begin at any index, and have any dimensions.
    v_progress := array(select unnest(p_progress));
    v_notes := array(select unnest(p_notes));
    update lease l set unlock_at = (extract(epoch from clock_timestamp()) * 1000000)::bigint + p_lease_ms * 1000,
      is_shared = l.is_shared and p_is_alone is not true,
      progress = coalesce(round(v_progress[u.ordinal] * 10000)::smallint, l.progress),
      progress_note = coalesce(v_notes[u.ordinal], l.progress_note)
    from unnest(v_leases, v_ordinals) u(tid, ordinal)
    where l.ctid = u.tid;
  end if;
  return query
  select u.id, coalesce(v_outcomes[u.ordinal], 'extended') from unnest(p_ids) with ordinality u(id, ordinal);
end
$$;
