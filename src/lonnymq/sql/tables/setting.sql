-- setting: the settings of the queue, in one row.
create table setting (
  is_only boolean primary key default true check (is_only),
  -- Makes channel ids and the notification channel unguessable. Only the owner may read it.
  salt bytea not null,
  history text not null default 'off' check (history in ('off', 'metadata', 'full')),
  max_content_bytes bigint not null default 67108864 check (max_content_bytes between 1 and 67108864),
  -- How many messages a channel of weight 1 gets in one turn of the rotation.
  quantum integer not null default 4 check (quantum between 1 and 100)
);
