-- channel: a tenant's name and policy. Written by channel_set and, on first use, by dequeue. Read by all calls.
-- The id is derived from the name (see channel_id), so that producers need not look it up and never wait for one
-- another.
create table channel (
  id bigint primary key,
  -- Ordered by its bytes, so that the channels with a prefix are a range.
  name text collate "C" not null,
  created_at timestamptz not null default now(),
  -- What is null follows the queue's default policy (see setting); -1 is a limit that is lifted.
  -- policy columns: written by tools/policy.py from model/policy.py. They are last because later ones are added last.
  max_concurrency integer check (max_concurrency >= 1 or max_concurrency = -1),
  release_interval_ms bigint check (release_interval_ms between 1 and 86400000 or release_interval_ms = -1),
  release_burst integer check (release_burst between 1 and 10000),
  weight integer check (weight between 1 and 1000),
  max_size bigint check (max_size >= 0 or max_size = -1),
  max_attempts integer check (max_attempts >= 1 or max_attempts = -1),
  is_paused boolean not null default false
  -- end of policy columns
) with (fillfactor = 90);
create index channel_name_ix on channel (name);
create index channel_paused_ix on channel (name) where is_paused;
