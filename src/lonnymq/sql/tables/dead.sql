-- dead: a dead letter: a buried message with its last error, until it is redriven or purged.
create table dead (
  message_id bigint primary key,
  channel text collate "C" not null,
  dequeue_at bigint not null,
  created_at bigint not null,
  buried_at bigint not null,
  attempts integer not null,
  max_attempts integer,
  key text,
  content bytea not null,
  state bytea,
  error text,
  headers jsonb,
  -- The line that names the error, by which dead letters are grouped: the last one that is not empty, at most 200
  -- characters of it. Computed once, because that takes long for a traceback.
  error_line text generated always as (
    coalesce(left(substring(rtrim(right(error, 10000), ' ' || chr(9) || chr(10) || chr(13))
      from '[^' || chr(10) || chr(13) || ']*$'), 200), '')
  ) stored
);
create index dead_channel_ix on dead (channel, message_id);
-- For those buried last.
create index dead_buried_ix on dead (buried_at, message_id);
create index dead_channel_buried_ix on dead (channel, buried_at, message_id);
