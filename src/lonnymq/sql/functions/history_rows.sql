-- history_rows: the rows of history for attempts that end now; the elements of p_leases, p_messages and p_errors belong
-- together. A message that is cancelled while it waits has no lease.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function history_rows(
  p_leases tid[], p_messages tid[], p_outcome text, p_errors text[], p_now bigint, p_is_full boolean
) returns table (
  message_id bigint, channel_id bigint, channel text, outcome text, attempt integer, created_at bigint,
  dequeue_at bigint, leased_at bigint, ended_at bigint, worker text, error text, content_bytes integer, content bytea,
  state bytea, headers jsonb
)
language sql stable
as $$
  select m.id, m.channel_id, coalesce(m.channel_name, (select c.name from channel c where c.id = m.channel_id),
      (select min(w.channel_name) from wake w where w.channel_id = m.channel_id)), p_outcome,
    coalesce(l.attempt, m.attempts), m.created_at, m.dequeue_at, l.leased_at / 1000, p_now, l.worker, u.error,
    octet_length(m.content), case when p_is_full then m.content end, case when p_is_full then m.state end,
    case when p_is_full then m.headers end
  from unnest(p_leases, p_messages, p_errors) u(lease, message, error)
  join message m on m.ctid = u.message
  left join lease l on l.ctid = u.lease
$$;
