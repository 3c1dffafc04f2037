-- history_prepare: create a partition of history for today, for each of the next p_days days, and for each day whose
-- attempts are in history_overflow; then move these there. A partition is created as a separate table and then
-- attached, so that no other call waits. p_limit is the most attempts to move; default: all.
-- Returns how many partitions were created.
-- Locks:  history in SHARE UPDATE EXCLUSIVE mode: one call at a time; readers and writers are not blocked.
-- Writes: history partitions, history_overflow (delete).
create or replace function history_prepare(p_days integer default 14, p_limit bigint default null) returns integer
language plpgsql security definer
set search_path from current
as $$
declare
  v_schema constant text := (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'history'::regclass);
  v_today constant date := (now() at time zone 'UTC')::date;
  v_day date;
  v_name text;
  v_from bigint;
  v_until bigint;
  v_created integer := 0;
  v_limit bigint := p_limit;
  v_moved bigint;
begin
  if p_days is null or p_days not between 0 and 366 then
    perform reject('days', p_days::text, 'between 0 and 366');
  elsif p_limit < 0 then
    perform reject('limit', p_limit::text, 'null, or 0 or more');
  end if;
  lock table history in share update exclusive mode;
  for v_day in
    select v_today + g from generate_series(0, p_days) g
    union
    select distinct (from_epoch(o.ended_at) at time zone 'UTC')::date from history_overflow o
    order by 1
  loop
    v_name := 'history_' || to_char(v_day, 'YYYYMMDD');
    if to_regclass(format('%I.%I', v_schema, v_name)) is null then
      v_from := to_epoch(v_day::timestamp at time zone 'UTC');
      v_until := to_epoch((v_day + 1)::timestamp at time zone 'UTC');
      execute format('create table %I.%I '
        '(like %I.history including defaults, check (ended_at >= %s and ended_at < %s))',
        v_schema, v_name, v_schema, v_from, v_until);
      perform relation_seal(format('%I.%I', v_schema, v_name)::regclass);
      execute format('create index on %I.%I (xid, id)', v_schema, v_name);
      perform history_index(format('%I.%I', v_schema, v_name)::regclass) where exists (select from tenant);
      execute format('alter table %I.history attach partition %I.%I for values from (%s) to (%s)',
        v_schema, v_schema, v_name, v_from, v_until);
      v_created := v_created + 1;
    end if;
    -- The overflow can have rows of a day that has a partition, if an attempt ended before that was visible. The rows
    -- get the xid of this transaction, because readers may have passed the one that wrote them.
    with chosen as (
      select o.ctid as place
      from history_overflow o
      where o.ended_at >= to_epoch(v_day::timestamp at time zone 'UTC')
        and o.ended_at < to_epoch((v_day + 1)::timestamp at time zone 'UTC')
      limit v_limit
    ),
    late as (
      delete from history_overflow o where o.ctid = any(array(select c.place from chosen c)) returning o.*
    )
    insert into history (id, message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at, leased_at,
      ended_at, worker, error, content_bytes, content, state, headers)
    select l.id, l.message_id, l.channel_id, l.channel, l.outcome, l.attempt, l.created_at, l.dequeue_at, l.leased_at,
      l.ended_at, l.worker, l.error, l.content_bytes, l.content, l.state, l.headers
    from late l;
    get diagnostics v_moved = row_count;
    v_limit := v_limit - v_moved;
  end loop;
  return v_created;
end
$$;
