-- channel_row_snapshot: a channel table with head pointers; create, dequeue and complete lock the channel's row
-- families: channels
-- case: one turn per message was taken while a snapshot was held; 1,000 channels
-- snapshot: held
-- Each turn leaves a dead version of the channel's row in front of the live ones; here all of them are created at once.
-- The other weak case of this design, contention for the row, is measured separately.

-- [create]
\ir channel_row.sql

-- [load]
insert into channel_row.message (channel, dequeue_at, content)
select 'tenant-' || i % 1000, floor(extract(epoch from now()) * 1000), decode(repeat('a7', 100), 'hex')
from generate_series(:first, :last) i;

-- [prepare]
select channel_row.channel_recount();

-- [worsen]
insert into channel_row.channel (name, next_at)
select 'dead-' || i, 0 from generate_series(1, :rows) i;
delete from channel_row.channel where next_at = 0;

-- [pick]
select message_id, content from channel_row.message_dequeue(600000);
