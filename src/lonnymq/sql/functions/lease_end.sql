-- lease_end: delete leases that this transaction has locked, and wake their channels: those with a cap may lease more
-- messages, and the messages in p_waiting wait again. message_complete, which is called most, has a statement of its
-- own.
-- Returns how many were ended; raises if a lease is given twice. Callers assign the result, which is cheaper than
-- `perform`.
-- Locks:  nothing more.
-- Writes: lease (delete), wake (insert).
create or replace function lease_end(p_leases tid[], p_waiting tid[] default null) returns integer
language plpgsql
as $$
declare
  v_ended integer;
begin
  with ended as (
    delete from lease l where l.ctid = any(p_leases) returning l.channel_id, l.is_capped
  ),
  changes as (
    select e.channel_id, 1 as done, 0 as waiting, null::bigint as id, null::bigint as at from ended e where e.is_capped
    union all
    select m.channel_id, 0, 1, m.id, m.dequeue_at from message m where m.ctid = any(p_waiting)
  ),
  woken as (
    insert into wake (channel_id, at, message_id, to_at, to_id, done, waiting)
    select c.channel_id, min(c.at), min(c.id), max(c.at), max(c.id), sum(c.done), sum(c.waiting) from changes c
    group by c.channel_id
  )
  select count(*) into v_ended from ended e;
  if v_ended <> cardinality(p_leases) then
    perform reject('ids', 'repeated ids', 'distinct');
  end if;
  perform sleepers_notify();
  return v_ended;
end
$$;
