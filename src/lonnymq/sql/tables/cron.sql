-- cron: what is to be created again and again. A worker computes the ticks, which are beyond SQL; the row decides who
-- creates them, and that nobody does so twice.
create table cron (
  name text primary key check (length(name) between 1 and 200 and name !~ '[[:cntrl:]]'),
  expression text not null check (length(expression) between 1 and 255),
  timezone text not null check (length(timezone) between 1 and 255),
  channel text not null,
  content bytea not null,
  max_attempts integer check (max_attempts >= 1),
  catch_up text not null check (catch_up in ('all', 'latest', 'none')),
  -- Declared in a program's code, so only workers of that program tick it: if it leaves the code, it stops.
  is_declared boolean not null,
  is_paused boolean not null default false,
  -- All ticks up to here are decided: created, or skipped. Grows with every change of what is to come.
  mark_at timestamptz not null,
  -- The next tick; null until a worker has computed it.
  next_at timestamptz,
  last_at timestamptz,
  created_at timestamptz not null default now(),
  -- All that workers read and compute with lies within the calendars of their languages: one row outside of these
  -- would keep a worker from reading any.
  constraint cron_instants_check check (
    mark_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
    and next_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
    and last_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
    and created_at between '1970-01-01 00:00:00+00' and '9000-01-01 00:00:00+00'
  )
);
create index cron_next_ix on cron (next_at) where not is_paused;
