-- require_dequeue: raise unless the arguments of message_dequeue and the isolation level of its transaction are valid.
-- SQLSTATE LQ001, LQ002.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_dequeue(p_limit integer, p_lease_ms bigint, p_worker text) returns void
language plpgsql
as $$
begin
  perform require_batch(p_limit);
  if p_lease_ms is null or p_lease_ms not between 1 and 86400000 then
    perform reject('lease_ms', p_lease_ms::text, 'between 1 and 86400000 (24 hours)');
  elsif length(p_worker) > 255 then
    perform reject('worker', p_worker, 'at most 255 characters long');
  end if;
  perform require_read_committed('message_dequeue');
end
$$;
