-- ids_advance: after a failover, a restore or a logical copy: let the next ids be higher than all that this database
-- contains: those of messages by p_by more, because the lost server may have issued ids that are unknown here, and the
-- others by c_gap. Without a gap, an id that another session gets at the same moment would be issued again.
-- Logical replication does not copy sequences; without this, creates would fail, and wakes would never be read.
-- May be called while the queue is in use, and again. Only the owner may call it.
-- Returns the lowest id that the next message can have.
-- Reads:  all of history, which takes a while if there is much of it.
-- Locks:  nothing.
-- Writes: the sequences of message, wake, history, audit and policy_change.
create or replace function ids_advance(p_by bigint default 1000000) returns bigint
language plpgsql security definer
set search_path from current
as $$
declare
  c_gap constant bigint := 1000000;
  v_message constant text := pg_get_serial_sequence('message', 'id');
  v_wake constant text := pg_get_serial_sequence('wake', 'id');
  v_audit constant text := pg_get_serial_sequence('audit', 'id');
  v_next bigint;
  v_history bigint;
begin
  if p_by is null or p_by not between 10000 and 1000000000000 then
    perform reject('by', p_by::text, 'between 10000 and 1000000000000');
  end if;
  perform setval(v_wake, c_gap +
    greatest((select max(w.id) from wake w), (select max(t.wake_id) from turn t), nextval(v_wake)));
  perform setval(v_audit, greatest((select max(a.id) from audit a), nextval(v_audit)));
  select max(h.id), max(h.message_id) into v_history, v_next
  from (
    select h.id, h.message_id from history h
    union all
    select o.id, o.message_id from history_overflow o
  ) h;
  perform setval('history_id_seq', c_gap + greatest(v_history, nextval('history_id_seq')));
  perform nextval(pg_get_serial_sequence('policy_change', 'id'));
  -- Last, so that the ids issued meanwhile are counted.
  v_next := p_by + greatest(v_next, (select max(m.id) from message m), (select max(l.message_id) from lease l),
    (select max(d.message_id) from dead d), nextval(v_message));
  perform setval(v_message, v_next);
  return v_next + 1;
end
$$;
