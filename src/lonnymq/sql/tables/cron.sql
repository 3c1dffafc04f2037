-- cron: what is to be created again and again. A worker computes the ticks, which are beyond SQL; the row decides who
-- creates them, and that nobody does so twice.
create table cron (
  name text primary key,
  expression text not null,
  timezone text not null,
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
  created_at timestamptz not null default now()
);
create index cron_next_ix on cron (next_at) where not is_paused;
