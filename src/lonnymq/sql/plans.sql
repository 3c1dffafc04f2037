-- plans: pin the query plans of functions that read tables whose size changes all the time. The statistics of such a
-- table are always wrong, because it was empty or full when it was analysed. The settings also override defaults of
-- roles and databases. Each setting adds about 0.3 µs to a call, so message_create has only those it needs.
do $$
declare
  -- Index scans only.
  c_index constant text := 'set enable_seqscan = off set enable_bitmapscan = off set enable_indexscan = on'
    ' set jit = off';
  -- Also joins, as nested loops.
  c_loop constant text := c_index || ' set enable_tidscan = on set enable_nestloop = on set enable_hashjoin = off'
    ' set enable_mergejoin = off';
  -- Also no sort: rows come in the order of the index.
  c_unsorted constant text := ' set enable_sort = off';
  -- Plan once per session, or at each call.
  c_generic constant text := ' set plan_cache_mode = force_generic_plan';
  c_custom constant text := ' set plan_cache_mode = force_custom_plan';
  -- Also show the caller no message but errors. Otherwise debug_print_plan and other settings, which every role may
  -- change, would send it the plans of the queue's statements with their values, such as ids.
  c_quiet constant text := ' set client_min_messages = error';
  v_pin record;
begin
  for v_pin in
    select n.name, p.oid::regprocedure as function, s.settings
    from (values
      (c_index, '{channel_delete, cron_due, dead_purge, dead_purge_channel, dead_redrive_channel, message_cancel_key}'),
      (c_index || c_custom, '{dead_list}'),
      (c_index || c_generic, '{message_create}'),
      (c_index || c_unsorted, '{history_follow, history_require_past, history_slices, message_attempts}'),
      (c_loop, '{claim_read, dead_redrive, group_check, group_results, group_sweep, message_cancel, message_run_now,
        message_read, message_show}'),
      (c_loop || c_custom, '{channel_due, channel_overdue, channel_page, channel_busiest, channel_explain, dead_page,
        dead_groups, message_page}'),
      (c_loop, '{dead_show, message_sample}'),
      (c_loop || c_unsorted, '{message_peek}'),
      (c_loop || c_generic, '{message_create_many, message_status_of}'),
      (c_loop || c_generic, acknowledgements()::text),
      (c_loop || c_generic || c_quiet, '{tenant_create, tenant_create_many}'),
      (c_loop || c_custom || c_quiet, '{message_of_uuid, tenant_cancel, tenant_cancel_key, tenant_channels,
        tenant_dead_list, tenant_history_list, tenant_peek, tenant_redrive, tenant_redrive_channel, tenant_show}'),
      (c_loop || c_generic || c_unsorted || ' set enable_memoize = off', '{message_dequeue}')
    ) s(settings, names)
    cross join unnest(s.names::text[]) n(name)
    left join pg_proc p on p.proname = n.name
      and p.pronamespace = (select s.oid from pg_namespace s where s.nspname = current_schema())
  loop
    if v_pin.function is null then
      raise exception 'plans.sql lists function %, which does not exist', v_pin.name;
    end if;
    execute format('alter function %s %s', v_pin.function, v_pin.settings);
  end loop;
end
$$;
