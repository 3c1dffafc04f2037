-- message_group: messages of which the last one that ends releases another message, their callback. Members know
-- nothing of this row: one has ended if its message is gone. So no member waits for another.
create table message_group (
  -- The callback waits for the group's deadline. group_check makes it due as soon as all members have ended.
  callback_id bigint primary key,
  -- Ids, in the order given.
  members bigint[] not null,
  -- Milliseconds.
  created_at bigint not null,
  deadline_at bigint not null,
  -- When group_sweep looks at it next.
  check_at bigint not null,
  is_released boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
  autovacuum_analyze_threshold = 2147483647);
create index message_group_check_ix on message_group (check_at);
