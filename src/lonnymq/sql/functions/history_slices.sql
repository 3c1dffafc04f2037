-- history_slices: cut the history between two positions into slices of p_rows rows, to be read in parallel.
-- With a reader, both positions must come from history_follow, and the reader must be able to continue from them (see
-- history_require). Without a reader, a null start is the beginning, and a null end is the last row whose transaction,
-- and all before it, have ended.
-- Returns the end of each slice, in order, and its number of rows: a reader that finds fewer knows that some were
-- dropped.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function history_slices(
  p_reader text, p_origin text, p_xid bigint, p_id bigint, p_end_xid bigint, p_end_id bigint, p_rows bigint
)
returns table (xid bigint, id bigint, rows bigint)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_end_xid constant bigint := coalesce(p_end_xid, pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1);
  v_end_id constant bigint := coalesce(p_end_id, 9223372036854775807);
  v_xid bigint := coalesce(p_xid, 0);
  v_id bigint := coalesce(p_id, 0);
begin
  if p_rows is null or p_rows < 1 then
    perform reject('rows', p_rows::text, 'at least 1');
  end if;
  if p_reader is not null then
    if p_xid is null or p_id is null or p_end_xid is null or p_end_id is null then
      perform reject('position', null, 'given, for a reader');
    end if;
    perform history_require(p_reader, p_origin, p_end_xid, p_end_id);
    perform history_require(p_reader, p_origin, p_xid, p_id);
  else
    perform history_require_past();
  end if;
  -- Jump to the end of each slice: numbering all rows would take five times as long. Several statements see the same
  -- rows, because nothing changes below the horizon.
  loop
    select h.xid, h.id into xid, id
    from history h
    where (h.xid, h.id) > (v_xid, v_id) and (h.xid, h.id) <= (v_end_xid, v_end_id)
    order by h.xid, h.id
    offset p_rows - 1 limit 1;
    exit when not found;
    rows := p_rows;
    return next;
    v_xid := xid;
    v_id := id;
  end loop;
  select h.xid, h.id into xid, id
  from history h
  where (h.xid, h.id) > (v_xid, v_id) and (h.xid, h.id) <= (v_end_xid, v_end_id)
  order by h.xid desc, h.id desc
  limit 1;
  if found then
    select count(*) into rows
    from history h
    where (h.xid, h.id) > (v_xid, v_id) and (h.xid, h.id) <= (v_end_xid, v_end_id);
    return next;
  end if;
end
$$;
