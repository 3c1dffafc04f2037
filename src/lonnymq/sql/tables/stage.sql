-- stage: a bulk load before it is published; a row has messages of one channel, in their order. Unlogged: after a crash
-- it is empty, and publish, which checks the counts, says so.
--
-- Loads and streams belong to the role that stages and publishes them: two roles may use one name and never meet.
-- queue_grant lets producers insert the columns from publication to max_attempts only; the others are as the defaults say.
create unlogged table stage (
  -- As caller_role(), which whoever inserts may not call.
  role text not null default coalesce(nullif(current_setting('role'), 'none'), session_user),
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

-- publication: bulk loads that were published; the role and the name make publishing idempotent.
create table publication (
  role text not null,
  name text not null,
  created bigint not null,
  duplicates bigint not null,
  published_at timestamptz not null default now(),
  primary key (role, name)
);

-- stream: bulk loads that come in numbered batches; the last one published makes publishing idempotent.
create table stream (
  role text not null,
  name text not null,
  last_batch bigint not null,
  created bigint not null,
  duplicates bigint not null,
  published_at timestamptz not null default now(),
  primary key (role, name)
);
