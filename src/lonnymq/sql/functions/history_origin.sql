-- history_origin: which history this is: server, timeline, table. Numbers of transactions mean nothing in another one.
-- Refuses to answer on a standby: what was read there could not be remembered.
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
