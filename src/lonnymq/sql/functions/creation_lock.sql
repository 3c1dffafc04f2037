-- creation_lock: try to become the only transaction that inserts or deletes the row of a channel ('channel'), its turn
-- ('turn') or a cron ('cron'), until it ends. Returns false at once if another transaction holds the lock, for the same
-- row or, rarely, for another row that shares it.
-- Locks:  a row of creation_lock; does not wait.
-- Writes: nothing.
create or replace function creation_lock(p_kind text, p_id bigint) returns boolean
language sql
set search_path from current
as $$
  select coalesce((
    select true from creation_lock l
    -- Ids are hashes, so their low bits are evenly distributed. Each kind has lock rows of its own.
    where l.id = case p_kind when 'turn' then p_id & 8191 when 'channel' then 8192 + (p_id & 4095)
      else 12288 + (p_id & 4095) end
    for update skip locked
  ), false)
$$;
