-- stage: rows of a bulk load before they are published. Unlogged: after a crash it is empty, and publish, which
-- checks the counts, says so.
create unlogged table stage (
  publication text not null,
  part uuid not null,
  ordinal bigint not null,
  channel text not null,
  content bytea not null,
  dequeue_at bigint,
  delay_ms bigint,
  key text,
  max_attempts integer,
  staged_at timestamptz not null default now()
) with (autovacuum_analyze_threshold = 2147483647);

-- publication: bulk loads that were published; the name makes publishing idempotent.
create table publication (
  name text primary key,
  created bigint not null,
  duplicates bigint not null,
  published_at timestamptz not null default now()
);

-- stream: bulk loads that come in numbered batches; the last one published makes publishing idempotent.
create table stream (
  name text primary key,
  last_batch bigint not null,
  created bigint not null,
  duplicates bigint not null,
  published_at timestamptz not null default now()
);
