-- group_sweep: look at groups that group_check has not released, because whoever ended their last member died before
-- the check, or because it ended without a worker: it was cancelled, or its lease expired. Deletes groups whose
-- callback has ended. Every worker calls it, and there is no leader. A group is looked at after 5 seconds, then after
-- as long as it has existed, at most a minute (an hour, once it is released).
-- Returns in how many milliseconds this caller should call again.
-- Locks:  groups, at most p_limit, and their callbacks, skipping locked ones.
-- Writes: message_group, message, wake (insert).
create or replace function group_sweep(p_limit integer default 100) returns bigint
language plpgsql security definer
set search_path from current
as $$
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_locked bigint[];
begin
  perform require_batch(p_limit);
  perform require_read_committed('group_sweep');
  select array_agg(s.callback_id) into v_locked from (
    select g.callback_id from message_group g where g.check_at <= v_now order by g.check_at limit p_limit
    for update skip locked
  ) s;
  if v_locked is not null then
    perform group_release(v_locked);
    -- A dead letter may be redriven, and then needs the results, for as long as these are kept.
    delete from message_group g
    where g.callback_id = any(v_locked) and (g.deadline_at + 604800000 <= v_now
      or (select true from message m where m.id = g.callback_id) is null
        and (select true from dead d where d.message_id = g.callback_id) is null);
    update message_group g set check_at = v_now + least(greatest(v_now - g.created_at, 5000),
      case when g.is_released then 3600000 else 60000 end)
    where g.callback_id = any(v_locked);
  end if;
  -- Give or take 10%, so that workers that started together do not keep calling together.
  return case
    when cardinality(v_locked) = p_limit then 0
    when exists (select from message_group) then 5000 * (0.9 + 0.2 * random())
    else 30000 * (0.9 + 0.2 * random())
  end;
end
$$;
