-- setting: the settings of the queue, in one row.
create table setting (
  is_only boolean primary key default true check (is_only),
  -- Makes channel ids and the notification channel unguessable. Only the owner may read it.
  salt bytea not null,
  history text not null default 'off' check (history in ('off', 'metadata', 'full')),
  max_content_bytes bigint not null default 67108864 check (max_content_bytes between 1 and 67108864),
  -- How many messages a channel of weight 1 gets in one turn of the rotation.
  quantum integer not null default 4 check (quantum between 1 and 100),
  -- The default policy: what applies to channels that have no value of their own.
  -- policy columns: written by tools/policy.py from model/policy.py. They are last because later ones are added last.
  max_concurrency integer check (max_concurrency >= 1),
  release_interval_ms bigint check (release_interval_ms between 1 and 86400000),
  release_burst integer check (release_burst between 1 and 10000),
  weight integer check (weight between 1 and 1000),
  max_size bigint check (max_size >= 0),
  max_attempts integer check (max_attempts >= 1)
  -- end of policy columns
);
