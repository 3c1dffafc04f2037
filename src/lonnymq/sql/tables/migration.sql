-- migration: the migrations that were applied to this schema.
-- breaks_below: a client whose newest known version is below this must not use the schema.
create table migration (
  version integer primary key,
  name text not null,
  breaks_below integer not null default 0,
  applied_at timestamptz not null default now()
);
