-- creation_lock: rows to lock on behalf of rows that do not exist yet, see the function creation_lock. Advisory locks
-- would avoid collisions, but every role that may connect could take them and so stop the queue. With this many rows, a
-- transaction that stays open after it has created a channel's turn delays one in 8,192 of the other new channels, and
-- one that has called channel_set for a new channel makes channel_set answer 'busy' for one in 4,096 of the others.
create table creation_lock (
  id bigint primary key
) with (fillfactor = 100);
insert into creation_lock (id) select generate_series(0, 16383);
