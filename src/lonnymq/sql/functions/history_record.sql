-- history_record: remember attempts that end now (see history_rows). Does nothing if history is off.
-- Locks:  nothing.
-- Writes: history, or history_overflow where no partition is ready (insert).
create or replace function history_record(p_leases tid[], p_messages tid[], p_outcome text, p_errors text[]) returns void
language plpgsql
as $$
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_mode text;
  v_until bigint;
begin
  select s.history, s.history_until into v_mode, v_until from setting s where s.is_only;
  if v_mode = 'off' then
    return;
  elsif v_now < v_until then
    insert into history (message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at, leased_at, ended_at,
      worker, error, content_bytes, content, state)
    select * from history_rows(p_leases, p_messages, p_outcome, p_errors, v_now, v_mode = 'full');
  else
    insert into history_overflow (message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at, leased_at,
      ended_at, worker, error, content_bytes, content, state)
    select * from history_rows(p_leases, p_messages, p_outcome, p_errors, v_now, v_mode = 'full');
  end if;
end
$$;
