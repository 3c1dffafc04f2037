-- lonnymq_scheduled: LonnyMQ
-- families: order, flag, iteration
-- case: one message in 10,000, and at least ten, are due, the others scheduled for tomorrow; 1,000 channels
-- install: lonnymq
-- The turn of a channel whose next message is not due records when it is, and is not read before then.

-- [load]
insert into lonnymq.stage (publication, part, ordinal, channel, contents, delays_ms)
select 'load ' || :first, '00000000-0000-0000-0000-000000000001', i / 65536, 'tenant-' || i % 1000,
  array_agg(decode(repeat('a7', 100), 'hex')), array_agg(86400000::bigint)
from generate_series(:first, :last) i group by 3, 4;
select * from lonnymq.message_publish('load ' || :first, '{00000000-0000-0000-0000-000000000001}', array[:last - :first + 1]);

-- [prepare]
\ir lonnymq_fold.sql
select count(*) from lonnymq.message_create_many(
  array(select 'tenant-' || i % 1000 from generate_series(1, greatest(10, :rows / 10000)) i),
  array(select decode(repeat('a7', 100), 'hex') from generate_series(1, greatest(10, :rows / 10000)))
);

-- [pick]
select message_id, content from lonnymq.message_dequeue(1, 600000, null, false);

-- [replenish]
select * from lonnymq.message_create('tenant-' || floor(random() * 1000), decode(repeat('a7', 100), 'hex'));
