-- queue_outlook: message_dequeue found nothing at all: do others hold what is due, and when will something be due?
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_outlook(p_now bigint, out is_busy boolean, out due_at bigint)
language plpgsql
as $$
begin
  is_busy := exists (select from turn t where t.next_at <= p_now order by t.next_at limit 1);
  due_at := least(
    (select t.next_at from turn t where t.next_at > p_now order by t.next_at limit 1),
    -- What has expired and is still there is locked, or more than one look takes.
    (select case when l.unlock_at > p_now then l.unlock_at else p_now + 50000 end from lease l order by l.unlock_at limit 1)
  );
end
$$;
