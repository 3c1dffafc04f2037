-- history_require_past: raise, SQLSTATE LQ006, if history has rows of transactions that this server has not had: a dump
-- brought them, and what is written now would be below what is read.
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
  -- In one statement: what it sees has begun before its snapshot ends.
  select greatest((select h.xid from history h order by h.xid desc, h.id desc limit 1), (select f.xid from history_floor f)),
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint
  into v_xid, v_next;
  if v_xid >= v_next then
    raise exception using
      errcode = 'LQ006',
      message = format('history has rows of transaction %s, and this server has come to %s only: a dump was restored, '
        'and its history must be rebased', v_xid, v_next),
      hint = 'Say `lonnymq history rebase`, and let readers begin anew.';
  end if;
end
$$;
