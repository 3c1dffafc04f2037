-- history_release: ask whether a partition of history may be dropped, and if so, raise the floor above it: then no reader
-- that comes late takes the gap for silence.
-- Returns null if it may be dropped, or else the name of a reader that is not done with it.
-- Locks:  the partition, against writers: there are none left, or this waits for them (set a lock_timeout).
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
  -- A writer that has not committed yet is waited for, so that its rows are seen below.
  execute format('lock table %I.%I in share mode', v_schema, p_partition);
  execute format('select p.xid, p.id from %I.%I p order by p.xid desc, p.id desc limit 1', v_schema, p_partition)
  into v_xid, v_id;
  if v_xid is null then
    return null;
  end if;
  -- Readers that register or move meanwhile: forward they only need less, and a new one begins above the floor or waits.
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
