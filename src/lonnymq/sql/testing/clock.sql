-- clock.sql: a clock that tests can move. Never part of an installation: lonnymq.testing runs it in the schemas of
-- tests, with the schema in front of pg_catalog, and then applies functions and views again. So they all call this
-- now() and this clock_timestamp(), and none of them has to be written with tests in mind.

create table clock (
  is_only boolean primary key default true check (is_only),
  ahead interval not null default '0'
);
insert into clock default values;

create function clock_timestamp() returns timestamptz
language sql volatile security definer
set search_path from current
as $$
  select pg_catalog.clock_timestamp() + c.ahead from clock c
$$;

create function now() returns timestamptz
language sql stable security definer
set search_path from current
as $$
  select pg_catalog.now() + c.ahead from clock c
$$;

-- clock_advance: move the clock forward by p_by for all sessions, and wake sleeping workers.
-- Returns the new time.
-- Locks:  the clock.
-- Writes: clock.
create function clock_advance(p_by interval) returns timestamptz
language plpgsql
set search_path from current
as $$
begin
  update clock c set ahead = c.ahead + p_by;
  perform pg_notify(queue_event(), '');
  return clock_timestamp();
end
$$;

-- clock_due: after a dequeue that found nothing, when the next message is due or the next lease ends; null: never.
-- Locks:  nothing.
-- Writes: nothing.
create function clock_due() returns timestamptz
language sql stable
set search_path from current
as $$
  select to_timestamp(o.due_at / 1000000.0)
  from queue_next_due((extract(epoch from clock_timestamp()) * 1000000)::bigint) o
$$;

alter table channel alter column created_at set default now();
alter table cron alter column created_at set default now();
alter table publication alter column published_at set default now();
alter table stage alter column staged_at set default now();
