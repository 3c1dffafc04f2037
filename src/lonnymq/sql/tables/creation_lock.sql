-- creation_lock: rows to lock for what has no row yet. Advisory locks would do, and nothing would share one, but any role
-- that may connect can take those. With this many rows, a transaction that is left open after it made a channel's turn
-- holds up one in 8,192 of the channels that are new.
create table creation_lock (
  id bigint primary key
) with (fillfactor = 100);
insert into creation_lock (id) select generate_series(0, 16383);
