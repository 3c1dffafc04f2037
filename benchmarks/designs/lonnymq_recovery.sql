-- lonnymq_recovery: LonnyMQ
-- families: recovery
-- case: 100 messages were leased by workers that died; lease them again, 100 at a time
-- install: lonnymq
-- Expired leases are found by an index, in the dequeue that leases their messages again.

-- [load]
insert into lonnymq.stage (publication, part, ordinal, channel, contents)
select 'load ' || :first, '00000000-0000-0000-0000-000000000001', i / 65536, 'tenant-' || i % 100,
  array_agg(decode(repeat('a7', 100), 'hex'))
from generate_series(:first, :last) i group by 3, 4;
select * from lonnymq.message_publish('load ' || :first, '{00000000-0000-0000-0000-000000000001}', array[:last - :first + 1]);

-- [prepare]
\ir lonnymq_fold.sql
update lonnymq.lease set unlock_at = 0;

-- [pick]
select message_id, content from lonnymq.message_dequeue(100, 600000, null, false);

-- [replenish]
update lonnymq.lease set unlock_at = 0 where message_id in (select message_id from lonnymq.lease order by message_id limit 100);
-- Makes the next dequeue look for expired leases.
select pg_sleep(0.1);
