-- history_require_past: raise if history has rows of transactions that this server has not reached, because they come
-- from a dump: rows written now would lie below what readers have read. SQLSTATE LQ006.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function history_require_past() returns void
language plpgsql
set search_path from current
as $$
declare
  v_xid bigint;
  v_next bigint;
begin
  -- One statement, so that every transaction whose rows it sees is below the end of its snapshot.
  select
    greatest((select h.xid from history h order by h.xid desc, h.id desc limit 1), (select f.xid from history_floor f)),
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint
  into v_xid, v_next;
  if v_xid >= v_next then
    raise exception using
      errcode = 'LQ006',
      message = format('history has rows of transaction %s, but this server has only reached %s: a dump was restored, '
        'and its history must be rebased', v_xid, v_next),
      hint = 'Run `lonnymq history rebase`, then start the readers again from the beginning.';
  end if;
end
$$;
