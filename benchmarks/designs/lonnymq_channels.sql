-- lonnymq_channels: LonnyMQ
-- families: channels
-- case: one channel for every ten messages, all of them ready
-- install: lonnymq
-- The next turn is the first entry of one index, whatever the number of channels.

-- [load]
insert into lonnymq.stage (publication, part, ordinal, channel, contents)
select 'load ' || :first, '00000000-0000-0000-0000-000000000001', i / 65536, 'tenant-' || i / 10,
  array_agg(decode(repeat('a7', 100), 'hex'))
from generate_series(:first, :last) i group by 3, 4;
select * from lonnymq.message_publish('load ' || :first, '{00000000-0000-0000-0000-000000000001}', array[:last - :first + 1]);

-- [prepare]
\ir lonnymq_fold.sql

-- [pick]
select message_id, content from lonnymq.message_dequeue(1, 600000, null, false);
