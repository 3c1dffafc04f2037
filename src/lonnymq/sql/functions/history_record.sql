-- history_record: record attempts that end now (see history_rows). Does nothing if history is off.
-- An attempt must be able to end even if there is no partition for today: then its row goes to history_overflow.
-- Locks:  nothing.
-- Writes: history, or history_overflow (insert).
create or replace function history_record(p_leases tid[], p_messages tid[], p_outcome text, p_errors text[])
returns void
language plpgsql
as $$
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_mode text;
begin
  select s.history into v_mode from setting s where s.is_only;
  if v_mode = 'off' then
    return;
  end if;
  begin
    insert into history (message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at, leased_at, ended_at,
      worker, error, content_bytes, content, state, headers)
    select * from history_rows(p_leases, p_messages, p_outcome, p_errors, v_now, v_mode = 'full');
  exception when check_violation then
    insert into history_overflow (message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at, leased_at,
      ended_at, worker, error, content_bytes, content, state, headers)
    select * from history_rows(p_leases, p_messages, p_outcome, p_errors, v_now, v_mode = 'full');
  end;
end
$$;
