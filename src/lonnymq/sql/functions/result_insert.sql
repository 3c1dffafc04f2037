-- result_insert: keep what became of messages that have ended, and notify those that wait for results. Elements whose
-- p_keep_ms is null are left out. Where a content is null, and without p_contents, only the outcome is kept.
-- Locks:  nothing until the commit; then the lock that NOTIFY takes.
-- Writes: result (insert).
create or replace function result_insert(
  p_ids bigint[], p_keep_ms bigint[], p_outcome text, p_contents bytea[] default null
) returns void
language plpgsql
as $$
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
begin
  insert into result (slot, message_id, outcome, content, ended_at, expires_at)
  select (v_now + u.keep_ms) / 86400000 % 10, u.id, p_outcome, u.content, v_now, v_now + u.keep_ms
  from unnest(p_ids, p_keep_ms, p_contents) u(id, keep_ms, content)
  where u.id is not null and u.keep_ms is not null;
  if found then
    perform pg_notify(result_event(), '');
  end if;
end
$$;
