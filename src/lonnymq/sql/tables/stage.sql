-- stage: a bulk load before it is published. A row holds messages of one channel, in order. The table is unlogged:
-- after a crash it is empty, which message_publish reports because it checks the counts.
--
-- Loads and streams belong to the role that stages and publishes them, so two roles can use the same name
-- independently. queue_grant lets producers insert only the columns from publication to headers; the others keep their
-- defaults.
create unlogged table stage (
  -- The same as caller_role(), which a producer that inserts here may not call.
  role text not null default coalesce(nullif(current_setting('role'), 'none'), session_user),
  publication text not null,
  part uuid not null,
  ordinal bigint not null,
  channel text not null,
  contents bytea[] not null,
  -- Each optional array is null or as long as contents; its elements may be null.
  dequeue_ats bigint[],
  delays_ms bigint[],
  keys text[],
  max_attempts integer[],
  headers jsonb[],
  staged_at timestamptz not null default now(),
  constraint stage_contents_are_a_list_without_null check (
    coalesce(array_ndims(contents), 0) = 1 and array_position(contents, null) is null
  ),
  constraint stage_arrays_are_as_long_as_contents check (
    cardinality(dequeue_ats) = cardinality(contents) and cardinality(delays_ms) = cardinality(contents)
    and cardinality(keys) = cardinality(contents) and cardinality(max_attempts) = cardinality(contents)
    and cardinality(headers) = cardinality(contents)
  )
) with (autovacuum_analyze_threshold = 2147483647);
-- Compression does not pay, because each row is read only once.
alter table stage
  alter column contents set storage external, alter column dequeue_ats set storage external,
  alter column delays_ms set storage external, alter column keys set storage external,
  alter column max_attempts set storage external, alter column headers set storage external;

-- publication: bulk loads that were published. The key (role, name) makes publishing idempotent.
create table publication (
  role text not null,
  name text not null,
  created bigint not null,
  duplicates bigint not null,
  published_at timestamptz not null default now(),
  primary key (role, name)
);

-- stream: bulk loads that arrive in numbered batches. The number of the last published batch makes publishing
-- idempotent.
create table stream (
  role text not null,
  name text not null,
  last_batch bigint not null,
  created bigint not null,
  duplicates bigint not null,
  published_at timestamptz not null default now(),
  primary key (role, name)
);
