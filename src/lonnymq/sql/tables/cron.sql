-- cron: a message to create again and again. A worker computes the ticks, because SQL cannot read cron expressions;
-- mark_at ensures that each tick is decided by exactly one worker (see cron_tick).
create table cron (
  name text primary key check (length(name) between 1 and 200 and name !~ '[[:cntrl:]]'),
  expression text not null check (length(expression) between 1 and 255),
  timezone text not null check (length(timezone) between 1 and 255),
  channel text not null,
  content bytea not null,
  headers jsonb,
  max_attempts integer check (max_attempts >= 1),
  catch_up text not null check (catch_up in ('all', 'latest', 'none')),
  -- Declared in a program's code: only workers of that program tick it, so it stops when it is removed from the code.
  is_declared boolean not null,
  is_paused boolean not null default false,
  -- All ticks up to here are decided: created or skipped. Moves forward with every tick and every change of the
  -- schedule.
  mark_at timestamptz not null,
  -- The next tick; null until a worker has computed it.
  next_at timestamptz,
  last_at timestamptz,
  created_at timestamptz not null default now(),
  -- Every instant must fit the calendar of every client language: a single row outside of it would prevent workers from
  -- reading any cron.
  constraint cron_instants_check check (
    mark_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
    and next_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
    and last_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
    and created_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
  )
);
create index cron_next_ix on cron (next_at) where not is_paused;
