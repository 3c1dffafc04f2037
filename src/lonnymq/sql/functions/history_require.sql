-- history_require: raise if a reader cannot continue from a position. SQLSTATE LQ001: an argument is invalid. LQ006:
-- the position is not one of this history, because the database was restored or failed over, or the queue was
-- reinstalled. LQ007: rows after the position were dropped.
-- A reader's positions are on disk before it is told them, so a position that is not in history_reader is from
-- elsewhere. p_origin is the origin of the position, or null if it may be from before a failover. Then rows below the
-- position that were written after the reader was given it show that transaction ids were assigned a second time.
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
  if p_reader is null or length(p_reader) not between 1 and 255 then
    perform reject('reader', p_reader, '1 to 255 characters');
  elsif length(p_origin) > 255 then
    perform reject('origin', p_origin, 'at most 255 characters');
  elsif p_xid is null or p_id is null then
    perform reject('position', null, 'a transaction and an id');
  end if;
  v_problem := case
    when p_origin <> v_origin then format('it is from history %s, but this is history %s', p_origin, v_origin)
    when p_xid >= v_horizon then format('this server has only reached transaction %s', v_horizon)
    when not exists (select from history_reader r where r.name = p_reader) then 'this queue knows no such reader'
    when not exists (
      select from history_reader r where r.name = p_reader and (r.xid, r.id) >= (p_xid, p_id)
    ) then 'this queue has not given that position to the reader'
    when p_origin is null and exists (
      select from history_reader r join history h on h.ended_at > to_epoch(r.followed_at) + 1000 and h.xid < p_xid
      where r.name = p_reader
    ) then 'rows have been written below it since'
  end;
  if v_problem is not null then
    raise exception using
      errcode = 'LQ006',
      message = format('reader %L cannot continue from (%s, %s): %s', p_reader, p_xid, p_id, v_problem),
      hint = 'The database was restored or failed over, the queue was reinstalled, or the reader was forgotten. Start '
        'the reader again from the beginning.';
  end if;
  if p_origin is null then
    perform history_require_past();
  end if;
  if exists (select from history_floor f where (f.xid, f.id) > (p_xid, p_id)) then
    raise exception using
      errcode = 'LQ007',
      message = format('reader %L cannot continue from (%s, %s): history after that was dropped',
        p_reader, p_xid, p_id),
      hint = 'Start the reader again from the beginning of what is left.';
  end if;
end
$$;
