-- server_pids: the server's own processes, such as the checkpointer. A crash of any session ends all of them, although
-- the server then continues with the same start time.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function server_pids() returns integer[]
language sql stable
as $$
  select array(select a.pid from pg_stat_activity a where a.datid is null)
$$;
