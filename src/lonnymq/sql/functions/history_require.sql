-- history_require: raise if a reader cannot go on from a position. SQLSTATE LQ006: this database does not know the
-- position, since it was restored, failed over or installed again; LQ007: what follows it was dropped.
-- p_origin is where the position is from; null if it may be from before a failover: then what was written here below it,
-- after the reader had come as far, tells that the numbers are another past's.
-- A reader's positions are on disk before anybody has them, so one that is not there is from another past.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function history_require(p_reader text, p_origin text, p_xid bigint, p_id bigint) returns void
language plpgsql
set search_path from current
as $$
declare
  v_origin constant text := history_origin();
  v_horizon constant bigint := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  v_problem text;
begin
  v_problem := case
    when p_origin <> v_origin then format('it is from %s, this is %s', p_origin, v_origin)
    when p_xid >= v_horizon then format('transactions here have come to %s only', v_horizon)
    when not exists (select from history_reader r where r.name = p_reader) then 'no such reader is known here'
    when not exists (
      select from history_reader r where r.name = p_reader and (r.xid, r.id) >= (p_xid, p_id)
    ) then 'here this reader has not come as far'
    when p_origin is null and exists (
      select from history_reader r join history h on h.ended_at > to_epoch(r.followed_at) + 1000 and h.xid < p_xid
      where r.name = p_reader
    ) then 'rows were written here below it since'
  end;
  if v_problem is not null then
    raise exception using
      errcode = 'LQ006',
      message = format('reader %L cannot go on from (%s, %s): %s', p_reader, p_xid, p_id, v_problem),
      hint = 'The database was restored, failed over or installed again, or the reader was forgotten.';
  end if;
  if p_origin is null then
    perform history_require_past();
  end if;
  if exists (select from history_floor f where (f.xid, f.id) > (p_xid, p_id)) then
    raise exception using
      errcode = 'LQ007',
      message = format('reader %L cannot go on from (%s, %s): history after that was dropped', p_reader, p_xid, p_id),
      hint = 'Begin anew, with what is left.';
  end if;
end
$$;
