-- cron_tick: create a message for each of p_ticks, which are the ticks of a cron after p_mark_at up to p_until_at, and
-- record that all up to p_until_at are decided. The message's time is the tick, its key
-- 'cron:name:2026-03-29T01:00:00Z'.
-- Returns 'ticked' and how many were created (a full channel drops some); 'stale' if the cron's mark is no longer
-- p_mark_at (another worker was first), or it is paused or deleted; 'busy' if another transaction has it locked.
-- Locks:  the cron's row, without waiting; then as message_create.
-- Writes: cron, message, wake (insert).
create or replace function cron_tick(
  p_name text, p_mark_at timestamptz, p_until_at timestamptz, p_ticks timestamptz[], p_next_at timestamptz,
  out outcome text, out created integer
)
language plpgsql security definer
set search_path from current
as $$
declare
  v_cron cron;
  v_tick timestamptz;
  v_last_at timestamptz;
begin
  perform require_cron(p_name);
  perform require_read_committed('cron_tick');
  perform require_cron_instant('mark_at', p_mark_at);
  perform require_cron_instant('until_at', p_until_at);
  perform require_cron_instant('next_at', p_next_at);
  if p_until_at < p_mark_at then
    perform reject('until_at', p_until_at::text, format('not before mark_at (%s)', p_mark_at));
  elsif p_until_at > greatest(p_mark_at, clock_timestamp() + interval '100 years') then
    -- The same limit as in cron_set: a mark at the end of the calendar could not be moved any more.
    perform reject('until_at', p_until_at::text, 'at most 100 years from now');
  elsif p_next_at <= p_until_at then
    perform reject('next_at', p_next_at::text, format('after until_at (%s)', p_until_at));
  elsif p_ticks is null or cardinality(p_ticks) > 10000 then
    perform reject('ticks', cardinality(p_ticks) || ' elements', 'an array of at most 10000 elements');
  end if;
  v_last_at := p_mark_at;
  foreach v_tick in array p_ticks loop
    if v_tick is null or v_tick <= v_last_at or v_tick > p_until_at then
      perform reject('ticks', coalesce(v_tick::text, 'null'), 'ascending, after mark_at and not after until_at');
    end if;
    v_last_at := v_tick;
  end loop;

  created := 0;
  select * into v_cron from cron c where c.name = p_name for update skip locked;
  if not found then
    outcome := case when exists (select from cron c where c.name = p_name) then 'busy' else 'stale' end;
    return;
  elsif v_cron.mark_at <> p_mark_at or v_cron.is_paused then
    outcome := 'stale';
    return;
  end if;
  foreach v_tick in array p_ticks loop
    if (select m.outcome from message_create(
        p_channel => v_cron.channel, p_content => v_cron.content, p_dequeue_at => to_epoch(v_tick),
        p_key => format('cron:%s:%s', p_name, to_char(v_tick at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
        p_max_attempts => v_cron.max_attempts, p_headers => v_cron.headers) m) = 'created' then
      created := created + 1;
    end if;
  end loop;
  update cron c set
    mark_at = p_until_at,
    next_at = p_next_at,
    last_at = case when cardinality(p_ticks) > 0 then v_last_at else c.last_at end
  where c.name = p_name;
  outcome := 'ticked';
end
$$;
