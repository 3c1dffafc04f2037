-- lease_end_cancelled: delete those of the given leases whose message was cancelled, and wake their channels.
-- Returns how many of the given leases it could lock.
-- Locks:  the leases, skipping locked ones.
-- Writes: lease (delete), wake (insert).
create or replace function lease_end_cancelled(p_leases tid[]) returns integer
language plpgsql
as $$
declare
  v_leases tid[];
begin
  select array_agg(s.ctid) into v_leases
  from (select l.ctid from lease l where l.ctid = any(p_leases) for update skip locked) s;
  if v_leases is null then
    return 0;
  end if;
  with ended as (
    delete from lease l where l.ctid = any(v_leases) and (select true from message m where m.id = l.message_id) is null
    returning l.channel_id, l.is_capped
  )
  insert into wake (channel_id, done, waiting)
  select e.channel_id, count(*) filter (where e.is_capped), count(*) from ended e group by e.channel_id;
  perform sleepers_notify();
  return cardinality(v_leases);
end
$$;
