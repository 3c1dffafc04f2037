-- lonnymq_priority: LonnyMQ
-- families: priority
-- case: a quarter urgent with many distinct priorities, a quarter due, half scheduled for tomorrow; one channel
-- install: lonnymq
-- There is no priority column: dequeue_at is a number, which is low for urgent messages.

-- [load]
insert into lonnymq.stage (publication, part, ordinal, channel, contents, dequeue_ats)
select 'load ' || :first, '00000000-0000-0000-0000-000000000001', i / 65536, 'tenant',
  array_agg(decode(repeat('a7', 100), 'hex')), array_agg(case
    when i % 4 = 0 then -(i % 100000)
    else floor(extract(epoch from now()) * 1000)::bigint + case when i % 4 = 1 then -1000 else 86400000 end
  end order by i)
from generate_series(:first, :last) i group by 3, 4;
select * from lonnymq.message_publish('load ' || :first, '{00000000-0000-0000-0000-000000000001}', array[:last - :first + 1]);

-- [prepare]
\ir lonnymq_fold.sql

-- [pick]
select message_id, content from lonnymq.message_dequeue(1, 600000, null, false);
