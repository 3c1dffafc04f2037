-- exact_count: the last exact count of the queue, and the last attempt to take one (see queue_count). One row.
create table exact_count (
  is_only boolean primary key default true check (is_only),
  counts jsonb,
  counted_at timestamptz,
  -- When a count was last begun, and how long it took, whether or not it succeeded.
  begun_at timestamptz,
  took_ms bigint
);
