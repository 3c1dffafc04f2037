-- queue_outlook: message_dequeue found nothing: are others holding what is due, and when will something be due?
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_outlook(
  p_now bigint, p_turn bigint, p_is_full boolean, inout is_busy boolean, inout due_at bigint
)
language plpgsql
as $$
begin
  is_busy := is_busy
    or exists (select from turn t where t.next_at <= p_now and t.next_at >= p_turn order by t.next_at limit 1);
  if p_is_full then
    due_at := least(
      (select t.next_at from turn t where t.next_at > p_now order by t.next_at limit 1),
      (select l.unlock_at from lease l where l.unlock_at > p_now order by l.unlock_at limit 1)
    );
  end if;
end
$$;
