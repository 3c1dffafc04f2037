-- stage: a bulk load before it is published; a row has messages of one channel, in their order. Unlogged: after a crash
-- it is empty, and publish, which checks the counts, says so.
create unlogged table stage (
  publication text not null,
  part uuid not null,
  ordinal bigint not null,
  channel text not null,
  contents bytea[] not null,
  -- As long as contents, or null; so may be their elements.
  dequeue_ats bigint[],
  delays_ms bigint[],
  keys text[],
  max_attempts integer[],
  staged_at timestamptz not null default now(),
  constraint stage_contents_are_a_list_without_null check (
    coalesce(array_ndims(contents), 0) = 1 and array_position(contents, null) is null
  ),
  constraint stage_arrays_are_as_long_as_contents check (
    cardinality(dequeue_ats) = cardinality(contents) and cardinality(delays_ms) = cardinality(contents)
    and cardinality(keys) = cardinality(contents) and cardinality(max_attempts) = cardinality(contents)
  )
) with (autovacuum_analyze_threshold = 2147483647);
-- They are read once: not worth compressing.
alter table stage
  alter column contents set storage external, alter column dequeue_ats set storage external,
  alter column delays_ms set storage external, alter column keys set storage external,
  alter column max_attempts set storage external;

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
