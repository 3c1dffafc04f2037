-- history_origin: identifies this history by server, timeline and table. Transaction ids mean nothing in another
-- history. Raises on a standby, because the reader's position could not be stored there. SQLSTATE LQ006.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function history_origin() returns text
language plpgsql
set search_path from current
as $$
begin
  if pg_is_in_recovery() then
    raise exception using
      errcode = 'LQ006',
      message = 'history cannot be followed on a standby',
      hint = 'Connect to the primary.';
  end if;
  return format('%s/%s/%s', (select s.system_identifier from pg_control_system() s),
    left(pg_walfile_name(pg_current_wal_lsn()), 8), 'history'::regclass::oid);
end
$$;
