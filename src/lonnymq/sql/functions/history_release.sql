-- history_release: ask whether a partition of history may be dropped. If so, raise the floor above it, so that a reader
-- that arrives later gets an error and does not miss the rows silently.
-- Returns null if it may be dropped, otherwise the name of a reader that is not done with it.
-- Locks:  the partition in SHARE mode: waits for transactions that still write to it (set a lock_timeout).
-- Writes: history_floor.
create or replace function history_release(p_partition text) returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_schema constant text := (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'history'::regclass);
  v_reader text;
  v_xid bigint;
  v_id bigint;
begin
  if p_partition is null or p_partition !~ '^history_[0-9]{8}$' then
    perform reject('partition', p_partition, 'the name of a partition of history');
  end if;
  -- Wait for writers that have not committed yet, so that their rows are visible below.
  execute format('lock table %I.%I in share mode', v_schema, p_partition);
  execute format('select p.xid, p.id from %I.%I p order by p.xid desc, p.id desc limit 1', v_schema, p_partition)
  into v_xid, v_id;
  if v_xid is null then
    return null;
  end if;
  -- Block readers that register meanwhile: a new one must start above the floor. One that moves forward only needs
  -- less.
  lock table history_reader in share row exclusive mode;
  select min(r.name) into v_reader from history_reader r where (r.done_xid, r.done_id) < (v_xid, v_id);
  if v_reader is not null then
    return v_reader;
  end if;
  insert into history_floor as f (xid, id) values (v_xid, v_id)
  on conflict (is_only) do update set xid = excluded.xid, id = excluded.id
  where (f.xid, f.id) < (excluded.xid, excluded.id);
  return null;
end
$$;
