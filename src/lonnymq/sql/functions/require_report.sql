-- require_report: raise unless a worker's report is complete and short. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_report(
  p_host text, p_pid integer, p_version text, p_tasks text[], p_slots integer, p_uptime_ms bigint, p_busy integer,
  p_held integer, p_message_ids bigint[], p_channels text[], p_leased_ats bigint[]
) returns void
language plpgsql
as $$
declare
  c_years_100 constant bigint := 3155760000000;
  -- In the year 2255.
  c_latest_us constant bigint := 9000000000000000;
  v_held constant integer := cardinality(p_message_ids);
begin
  if p_host is null or length(p_host) > 255 then
    perform reject('host', p_host, 'at most 255 characters');
  elsif p_pid is null or p_pid < 0 then
    perform reject('pid', p_pid::text, '0 or more');
  elsif p_version is null or length(p_version) > 100 then
    perform reject('version', p_version, 'at most 100 characters');
  elsif p_tasks is null or cardinality(p_tasks) > 50 or array_position(p_tasks, null) is not null
    or length(array_to_string(p_tasks, '')) > 5000 then
    perform reject('tasks', cardinality(p_tasks) || ' names', 'at most 50 names of 5000 characters together');
  elsif p_slots is null or p_slots not between 0 and 1000000 then
    perform reject('slots', p_slots::text, 'between 0 and 1000000');
  elsif p_uptime_ms is null or p_uptime_ms not between 0 and c_years_100 then
    perform reject('uptime_ms', p_uptime_ms::text, format('between 0 and %s (100 years)', c_years_100));
  elsif p_busy is null or p_busy not between 0 and 1000000 then
    perform reject('busy', p_busy::text, 'between 0 and 1000000');
  elsif p_held is null or p_held not between 0 and 1000000 then
    perform reject('held', p_held::text, 'between 0 and 1000000');
  elsif v_held is null or v_held > 10 or array_position(p_message_ids, null) is not null then
    perform reject('message_ids', v_held || ' ids', 'at most 10 ids');
  elsif p_channels is null or array_position(p_channels, null) is not null
    or length(array_to_string(p_channels, '')) > 2550 then
    perform reject('channels', cardinality(p_channels) || ' names', 'at most 10 names of 255 characters');
  elsif p_leased_ats is null or array_position(p_leased_ats, null) is not null
    or not (0 <= all(p_leased_ats) and c_latest_us >= all(p_leased_ats)) then
    perform reject('leased_ats', cardinality(p_leased_ats) || ' times',
      format('at most 10 times between 0 and %s microseconds', c_latest_us));
  end if;
  perform require_length('channels', cardinality(p_channels), v_held);
  perform require_length('leased_ats', cardinality(p_leased_ats), v_held);
end
$$;
