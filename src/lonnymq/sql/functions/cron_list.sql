-- cron_list: crons in the order of their names, without their contents, p_limit at a time after the name p_after.
-- next_at is null until a worker has computed it.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function cron_list(p_limit integer default 100, p_after text default '') returns table (
  name text, expression text, timezone text, channel text, catch_up text, max_attempts integer, is_declared boolean,
  is_paused boolean, mark_at timestamptz, next_at timestamptz, last_at timestamptz, created_at timestamptz
)
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform require_batch(p_limit);
  if p_after is null then
    perform reject('after', null, 'a name, or an empty string');
  end if;
  return query
  select c.name, c.expression, c.timezone, c.channel, c.catch_up, c.max_attempts, c.is_declared, c.is_paused, c.mark_at,
    c.next_at, c.last_at, c.created_at
  from cron c
  where c.name > p_after
  order by c.name limit p_limit;
end
$$;
