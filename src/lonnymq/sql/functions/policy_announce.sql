-- policy_announce: after the default policy has changed, wake the channels whose turns may wait for a limit of the old
-- one: up to p_limit channels per call, in the order of their ids. Part of a full scan of message_dequeue.
-- Another dequeue may have read the old policy and not committed its turns yet. A turn that it has locked is woken in
-- any case: its xmax is the id of that transaction (a turn that was locked and written by one transaction has that as
-- its xmin, too). A turn that it has inserted cannot be seen: therefore a second pass looks at all channels again when
-- the transactions that were open after the first one have ended.
-- Returns whether another call should follow soon.
-- Reads:  channel, turn.
-- Locks:  a row of policy_change, skipping locked ones.
-- Writes: wake (insert), policy_change.
create or replace function policy_announce(p_now bigint, p_limit integer default 1000) returns boolean
language plpgsql
as $$
declare
  v_id bigint;
  v_passed_id bigint;
  v_count integer;
begin
  select c.id into v_id from policy_change c
  where c.horizon is null or c.horizon < (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint
  order by c.id limit 1 for update skip locked;
  if v_id is null then
    return false;
  end if;
  with passed as materialized (
    select c.* from channel c
    where c.id > (select p.passed_id from policy_change p where p.id = v_id)
    order by c.id limit p_limit
  ),
  woken as (
    -- In the lane of bulk loads, because many channels at once should not delay others.
    insert into wake (lane, channel_id, channel_name)
    select 1, c.id, c.name
    from passed c
    cross join lateral (
      select t.xmin, t.xmax, t.next_at, t.return_at, t.release_at, t.waiting
      from turn t where t.channel_id = c.id order by t.version desc limit 1
    ) t
    where not c.is_paused
      and (c.max_concurrency is null or c.release_interval_ms is null or c.release_burst is null)
      and (t.xmax not in ('0', t.xmin) or t.next_at is null and t.return_at is null and t.waiting > 0
        or t.next_at > p_now and t.release_at > p_now)
  )
  select count(*), max(c.id) into v_count, v_passed_id from passed c;
  if v_count = p_limit then
    update policy_change set passed_id = v_passed_id where id = v_id;
    return true;
  end if;
  delete from policy_change where id = v_id and horizon is not null;
  update policy_change set passed_id = default, horizon = (pg_current_xact_id()::text)::bigint where id = v_id;
  return false;
end
$$;
