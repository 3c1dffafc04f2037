-- migration: which changes this schema has seen.
-- breaks_below: clients that know only versions below it must not touch the schema.
create table migration (
  version integer primary key,
  name text not null,
  breaks_below integer not null default 0,
  applied_at timestamptz not null default now()
);
