-- audit: what operators did: one row per action, written in the action's own transaction (see audit_record). Only the
-- newest 100,000 are kept. `role` is the database role; `actor` is whoever acted through it, as the client says.
create table audit (
  id bigint generated always as identity primary key,
  acted_at timestamptz not null,
  actor text not null,
  role text not null,
  verb text not null,
  subject text,
  arguments jsonb not null,
  outcomes jsonb not null
);
