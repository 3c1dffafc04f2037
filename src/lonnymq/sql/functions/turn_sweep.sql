-- turn_sweep: the clock stepped back, and turns stamped before that seem to be due only in the future: make them due.
-- Returns when to sweep again. Part of message_dequeue.
-- Locks:  such turns, skipping locked ones.
-- Writes: turn.
create or replace function turn_sweep(p_now bigint) returns bigint
language plpgsql
as $$
declare
  v_turns tid[];
begin
  select array_agg(s.ctid) into v_turns from (
    select ctid from turn
    where next_at > p_now and last_at > p_now + 1000000
    order by next_at limit 1000 for update skip locked
  ) s;
  if v_turns is not null then
    update turn set version = version + 1, next_at = p_now, last_at = p_now
    where ctid = any(v_turns) and last_at > p_now + 1000000;
    return p_now;
  end if;
  return p_now + greatest(10000000, 100 * ((extract(epoch from clock_timestamp()) * 1000000)::bigint - p_now));
end
$$;
