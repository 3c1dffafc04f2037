-- What the controller needs in the database, in a schema of its own. The queue's functions, as they are rewritten, call
-- yield_at; and as their search_path begins with the queue's schema, they use its clock.
create schema interleavings;

-- The clock advances by a microsecond whenever somebody looks at it: it is the same in each replay.
create sequence interleavings.clock_us;
create function lonnymq.clock_timestamp() returns timestamptz language sql volatile
as 'select to_timestamp(nextval(''interleavings.clock_us'') / 1000000.0)';
create function lonnymq.now() returns timestamptz language sql volatile
as 'select to_timestamp(nextval(''interleavings.clock_us'') / 1000000.0)';
-- A tenant may have no privileges but its own.
revoke execute on function lonnymq.clock_timestamp(), lonnymq.now() from public;

-- yield_at: tell the controller that this session is at a yield point, and wait until it lets the session go on: it holds
-- an advisory lock per session and step. The steps are numbered by a sequence, because a rollback to a savepoint would
-- reset a setting. The queue's call may have set a lock_timeout, which does not concern this lock, and a tenant's calls
-- send no notices.
create sequence interleavings.steps_0;
create sequence interleavings.steps_1;
create sequence interleavings.steps_2;
create function interleavings.yield_at(p_point integer) returns boolean language plpgsql volatile
set lock_timeout = 0
set client_min_messages = notice
as $$
declare
  v_session integer := nullif(current_setting('interleavings.session', true), '')::integer;
  v_step integer;
begin
  if v_session is not null then
    v_step := nextval(('interleavings.steps_' || v_session)::regclass);
    raise notice 'yield %', p_point;
    perform pg_advisory_lock(v_session, v_step);
    perform pg_advisory_unlock(v_session, v_step);
  end if;
  return true;
end
$$;

-- A logged sequence writes WAL now and then, which gives the transaction an id. In production, reading the clock gives it
-- none, and queue_horizon() does not know of a transaction without an id. PostgreSQL 14 has no unlogged sequences.
do $$
declare
  v_sequence regclass;
begin
  if current_setting('server_version_num')::integer >= 150000 then
    for v_sequence in select oid from pg_class where relnamespace = 'interleavings'::regnamespace and relkind = 'S' loop
      execute format('alter sequence %s set unlogged', v_sequence);
    end loop;
  end if;
end
$$;

-- Columns have the queue's clock as their default, too.
do $$
declare
  v_column record;
begin
  for v_column in
    select d.adrelid::regclass as tab, a.attname
    from pg_attrdef d
    join pg_class c on c.oid = d.adrelid and c.relnamespace = 'lonnymq'::regnamespace
    join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
    where pg_get_expr(d.adbin, d.adrelid) in ('now()', 'pg_catalog.now()')
  loop
    execute format('alter table %s alter column %I set default lonnymq.now()', v_column.tab, v_column.attname);
  end loop;
end
$$;

-- Autovacuum could hold something for a moment, so that message_complete, which waits for 2 ms, takes another path than it
-- did in the schedule that is replayed. The laboratory vacuums between schedules.
do $$
declare
  v_table regclass;
begin
  for v_table in select oid from pg_class where relnamespace = 'lonnymq'::regnamespace and relkind = 'r' loop
    execute format('alter table %s set (autovacuum_enabled = off)', v_table);
  end loop;
end
$$;

-- The names of the channels that scenarios use.
create table interleavings.name (channel_id bigint primary key, channel text not null);
insert into interleavings.name
select lonnymq.channel_id(s.salt, c), c from lonnymq.setting s cross join unnest('{a,b,c}'::text[]) c;

-- state: what is committed now, for the account.
create function interleavings.state() returns json language sql volatile set search_path = lonnymq, interleavings, pg_catalog
as $$
  select json_build_object(
    'now_us', (select last_value from clock_us),
    'messages', (select json_agg(json_build_array(m.id, n.channel, m.dequeue_at))
      from message m join name n using (channel_id)),
    'leases', (select json_agg(json_build_array(l.message_id, n.channel, l.token, l.attempt, l.leased_at, l.unlock_at))
      from lease l join name n using (channel_id)),
    'dead', (select json_agg(d.message_id) from dead d),
    -- Of all channels, also of those that have no row yet.
    'limits', (select json_agg(json_build_array(n.channel, nullif(coalesce(c.max_concurrency, s.max_concurrency), -1),
        nullif(coalesce(c.release_interval_ms, s.release_interval_ms), -1), coalesce(c.is_paused, false)))
      from name n cross join setting s left join channel c on c.id = n.channel_id),
    'sizes', (select json_object_agg(c.name, c.max_size) from channel c where c.max_size is not null),
    'has_history', (select s.history <> 'off' from setting s),
    'history', (select json_agg(json_build_array(h.message_id, h.outcome)) from (
      select h.message_id, h.outcome from history h union all select o.message_id, o.outcome from history_overflow o) h),
    'results', (select json_agg(json_build_array(r.message_id, r.outcome, convert_from(r.content, 'utf8')))
      from result r),
    'kept', (select json_agg(m.id) from message m where result_keep_ms(m.headers) is not null)
  )
$$;

-- set_sequence: set a sequence back; null: to where it has not been used.
create function interleavings.set_sequence(p_name text, p_last_value bigint) returns void language sql volatile
as $$ select setval(p_name, coalesce(p_last_value, 1), p_last_value is not null) $$;

-- history_clear: drop all partitions of history.
create function interleavings.history_clear() returns void language plpgsql
as $$
declare
  v_partition regclass;
begin
  for v_partition in select i.inhrelid from pg_inherits i where i.inhparent = 'lonnymq.history'::regclass loop
    execute format('drop table %s', v_partition);
  end loop;
end
$$;

-- tenant_role: the role that is the tenant in this database. Roles belong to the server.
create function interleavings.tenant_role() returns text language sql stable
as $$ select 'tenant_of_' || current_database() $$;

-- drain: dequeue and complete everything that is due. Returns the completed messages.
create function interleavings.drain() returns bigint[] language plpgsql set search_path = lonnymq, pg_catalog
as $$
declare
  v_ids bigint[];
  v_tokens bigint[];
  v_all bigint[] := '{}';
begin
  perform interleavings.hints_forget();
  for v_try in 1..30 loop
    select array_agg(d.message_id), array_agg(d.token) into v_ids, v_tokens
    from message_dequeue(100) d where d.outcome = 'leased';
    exit when v_ids is null;
    v_all := v_all || array(select c.message_id from message_complete(v_ids, v_tokens) c where c.outcome = 'completed');
  end loop;
  return v_all;
end
$$;

-- finish: after a schedule, check the queue, drain it, end all leases, and drain and check it again.
create function interleavings.finish(out problems text[], out drained bigint[]) language plpgsql
set search_path = lonnymq, pg_catalog set jit = off
as $$
begin
  problems := array(select format('queue_check: %s, channel %s: %s', q.problem, q.channel, q.detail) from queue_check() q);
  drained := interleavings.drain();
  -- A change of the default policy is announced in two passes, each by a full scan.
  for v_pass in 1..2 loop
    exit when not exists (select from policy_change);
    drained := drained || interleavings.drain();
  end loop;
  problems := problems || array(
    select format('message %s is stuck: it is due and may be leased, and is not', m.id)
    from message m
    cross join lateral (
      select nullif(coalesce(c.max_concurrency, s.max_concurrency), -1) as max_concurrency,
        nullif(coalesce(c.release_interval_ms, s.release_interval_ms), -1) as release_interval_ms, c.is_paused
      from setting s left join channel c on c.id = m.channel_id
    ) c
    where not exists (select from lease l where l.message_id = m.id) and c.is_paused is not true
      and c.release_interval_ms is null
      and m.dequeue_at * 1000 <= (select last_value from interleavings.clock_us)
      and coalesce(c.max_concurrency > (select count(*) from lease l where l.channel_id = m.channel_id), true)
  );
  if not exists (select from message) and not exists (select from lease) then
    return;
  end if;
  perform channel_set(c.name, '{"is_paused": false, "release_interval_ms": null}') from channel c;
  perform setval('interleavings.clock_us', nextval('interleavings.clock_us') + 3600000000);
  drained := drained || interleavings.drain();
  problems := problems || array(
    select format('queue_check after draining: %s, channel %s: %s', q.problem, q.channel, q.detail) from queue_check() q
  );
end
$$;
