-- creation_lock: try to become the only one who makes or deletes the row of a channel ('channel'), its turn ('turn') or a
-- cron ('cron'), until the transaction ends. Returns false at once if somebody else is; once in a while also because
-- somebody makes another row that shares its lock.
-- Locks:  a row of creation_lock; does not wait.
-- Writes: nothing.
create or replace function creation_lock(p_kind text, p_id bigint) returns boolean
language sql
set search_path from current
as $$
  select coalesce((
    select true from creation_lock l where l.id = hashtextextended(p_kind, p_id) & 16383 for update skip locked
  ), false)
$$;
