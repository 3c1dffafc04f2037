-- history_follow: decide up to where a reader of history may read next: at most p_max_rows rows (null: all) after the
-- position (p_xid, p_id); if that is null, from the beginning or, with p_is_latest, from now on. If p_before_xid is
-- given, only rows of transactions before it.
-- Returns
--   (xid, id)              the last of these rows. Its transaction, and all before it, have ended. The given position
--                          if there is no such row, and null if none was given either.
--   (after_xid, after_id)  the position after which these rows begin, also if none was given
--   origin                 identifies this history; the reader must pass it back with the position (see
--   history_require)
-- A new end position is on disk before it is returned: PostgreSQL does not log a transaction id when it assigns it, so
-- after a crash it could assign ids below what was read again. Asking from a position also says that the reader is done
-- with everything up to there.
-- Locks:  the reader's row.
-- Writes: history_reader.
create or replace function history_follow(
  p_reader text, p_origin text, p_xid bigint, p_id bigint, p_is_latest boolean, p_max_rows bigint,
  p_before_xid bigint,
  out origin text, out xid bigint, out id bigint, out after_xid bigint, out after_id bigint
)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_horizon bigint;
  v_before bigint;
begin
  if p_reader is null or length(p_reader) not between 1 and 255 then
    perform reject('reader', p_reader, '1 to 255 characters');
  elsif (p_xid is null) <> (p_id is null) then
    perform reject('position', null, 'a transaction and an id, or neither');
  elsif p_max_rows < 1 then
    perform reject('max_rows', p_max_rows::text, 'at least 1');
  end if;
  origin := history_origin();
  after_xid := p_xid;
  after_id := p_id;
  v_horizon := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  v_before := least(v_horizon, p_before_xid);
  if p_xid is null then
    perform history_require_past();
  end if;
  if p_xid is not null then
    perform history_require(p_reader, p_origin, p_xid, p_id);
  elsif p_is_latest then
    xid := v_horizon - 1;
    id := 9223372036854775807;
    after_xid := xid;
    after_id := id;
  else
    select coalesce(max(f.xid), 0), coalesce(max(f.id), 0) into after_xid, after_id from history_floor f;
  end if;
  if xid is null and p_max_rows is not null then
    select h.xid, h.id into xid, id from history h
    where (h.xid, h.id) > (after_xid, after_id) and h.xid < v_before
    order by h.xid, h.id offset p_max_rows - 1 limit 1;
  end if;
  if xid is null then
    select h.xid, h.id into xid, id from history h
    where (h.xid, h.id) > (after_xid, after_id) and h.xid < v_before
    order by h.xid desc, h.id desc limit 1;
  end if;
  if xid is not null and current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  insert into history_reader as r (name, xid, id, done_xid, done_id)
  values (p_reader, coalesce(xid, after_xid), coalesce(id, after_id), after_xid, after_id)
  on conflict (name) do update set
    -- A position at or beyond the horizon is from before a crash or a failover.
    xid = case when (excluded.xid, excluded.id) > (r.xid, r.id) or r.xid >= v_horizon then excluded.xid else r.xid end,
    id = case when (excluded.xid, excluded.id) > (r.xid, r.id) or r.xid >= v_horizon then excluded.id else r.id end,
    done_xid = excluded.done_xid,
    done_id = excluded.done_id,
    followed_at = now()
  where (r.done_xid, r.done_id) <> (excluded.done_xid, excluded.done_id) or (r.xid, r.id) < (excluded.xid, excluded.id)
    or r.xid >= v_horizon;
  if xid is null then
    xid := p_xid;
    id := p_id;
  end if;
end
$$;
