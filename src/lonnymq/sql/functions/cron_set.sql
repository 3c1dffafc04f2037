-- cron_set: create a message with this content and these headers in a channel at every tick of an expression, or change
-- an existing cron.
-- A new cron starts after p_mark_at or now. If the expression or the timezone changes, it starts again from now, and
-- ticks of the old expression that nobody has created by then are forgotten. A paused cron stays paused.
-- Returns 'set', 'unchanged', or 'busy' if another transaction is changing it (ask again).
-- Locks:  the cron's row, or its creation_lock if there is none; does not wait.
-- Writes: cron.
create or replace function cron_set(
  p_name text, p_expression text, p_channel text, p_content bytea, p_timezone text default 'UTC',
  p_catch_up text default 'latest', p_max_attempts integer default null, p_is_declared boolean default false,
  p_mark_at timestamptz default null, p_headers jsonb default null
) returns text
language plpgsql security definer
set search_path from current
as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_max_bytes bigint;
  v_is_rescheduled boolean;
  v_old cron;
begin
  perform require_cron(p_name);
  perform require_channel(p_channel);
  perform require_read_committed('cron_set');
  if p_expression is null or length(p_expression) not between 1 and 255 then
    perform reject('expression', quote_literal(p_expression), '1 to 255 characters');
  elsif p_timezone is null or length(p_timezone) not between 1 and 255 then
    perform reject('timezone', quote_literal(p_timezone), 'the name of a time zone');
  elsif p_content is null then
    perform reject('content', null, 'bytes');
  elsif p_catch_up is null or p_catch_up not in ('all', 'latest', 'none') then
    perform reject('catch_up', quote_literal(p_catch_up), '''all'', ''latest'' or ''none''');
  elsif p_max_attempts < 1 then
    perform reject('max_attempts', p_max_attempts::text, 'at least 1');
  elsif p_is_declared is null then
    perform reject('is_declared', null, 'true or false');
  elsif p_mark_at not between '1970-01-01 00:00:00+00' and v_now + interval '100 years' then
    perform reject('mark_at', p_mark_at::text, 'between 1970 and 100 years from now');
  end if;
  perform require_headers(p_headers);
  select s.max_content_bytes into v_max_bytes from setting s where s.is_only;
  if octet_length(p_content) > v_max_bytes then
    perform reject('content', octet_length(p_content) || ' bytes', format('at most %s bytes', v_max_bytes));
  end if;

  -- Before any lock, because every worker of a fleet sets the same crons when it starts.
  perform from cron c
  where c.name = p_name
    and (c.expression, c.timezone, c.channel, c.content, c.headers, c.catch_up, c.is_declared, c.max_attempts)
      is not distinct from (p_expression, p_timezone, p_channel, p_content, p_headers, p_catch_up, p_is_declared,
        p_max_attempts);
  if found then
    return 'unchanged';
  end if;
  select * into v_old from cron c where c.name = p_name for update skip locked;
  if not found then
    if exists (select from cron c where c.name = p_name)
      or not creation_lock('cron', hashtextextended(p_name, 0)) then
      return 'busy';
    end if;
    insert into cron (
      name, expression, timezone, channel, content, headers, max_attempts, catch_up, is_declared, mark_at
    )
    values (p_name, p_expression, p_timezone, p_channel, p_content, p_headers, p_max_attempts, p_catch_up,
      p_is_declared, coalesce(p_mark_at, v_now))
    on conflict do nothing;
    return case when found then 'set' else 'busy' end;
  end if;
  v_is_rescheduled := (v_old.expression, v_old.timezone) <> (p_expression, p_timezone);
  update cron c set
    expression = p_expression,
    timezone = p_timezone,
    channel = p_channel,
    content = p_content,
    headers = p_headers,
    max_attempts = p_max_attempts,
    catch_up = p_catch_up,
    is_declared = p_is_declared,
    mark_at = case when v_is_rescheduled then greatest(v_now, c.mark_at + interval '1 microsecond') else c.mark_at end,
    next_at = case when v_is_rescheduled then null else c.next_at end
  where c.name = p_name
    -- Another call may have made the same change just now.
    and (c.expression, c.timezone, c.channel, c.content, c.headers, c.catch_up, c.is_declared, c.max_attempts)
      is distinct from (p_expression, p_timezone, p_channel, p_content, p_headers, p_catch_up, p_is_declared,
        p_max_attempts);
  return case when found then 'set' else 'unchanged' end;
end
$$;
