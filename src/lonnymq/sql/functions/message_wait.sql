-- message_wait: how many milliseconds a message has been due, at most since it was created; null if it is not due at
-- p_now. Inlined.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_wait(p_dequeue_at bigint, p_created_at bigint, p_now bigint) returns float8
language sql immutable
as $$
  select case when p_dequeue_at * 1000 <= p_now then (p_now / 1000 - greatest(p_dequeue_at, p_created_at))::float8 end
$$;
