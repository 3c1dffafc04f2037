-- tenant: the channels that a role is confined to: one channel, or with is_prefix all whose names begin with it. A role
-- has no channel or prefix that another prefix of it covers, so the greatest name up to a channel's is the only one
-- that can cover it. A role is identified by its oid, so that another role that gets its name does not get its
-- channels.
create table tenant (
  role regrole not null,
  name text collate "C" not null,
  is_prefix boolean not null,
  -- In how many channels with this prefix its messages may be.
  max_channels integer,
  primary key (role, name)
);

-- tenant_channel: a channel that tenants use under a prefix or that limits its size; the row is locked on its behalf.
-- The row of a prefix itself is locked before a channel is added under it. The owner never waits for these locks.
create table tenant_channel (
  name text collate "C" not null,
  -- A channel may have the name of a prefix.
  is_prefix boolean not null default false,
  primary key (name, is_prefix)
);
