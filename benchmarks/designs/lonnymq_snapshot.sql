-- lonnymq_snapshot: LonnyMQ
-- families: order, channels
-- case: half of the messages were processed and completed while a snapshot was held; 1,000 channels
-- install: lonnymq
-- snapshot: held
-- Each channel continues from its mark, and the newest version of a turn comes first, so no dead row is read.

-- [load]
insert into lonnymq.stage (publication, part, ordinal, channel, contents)
select 'load ' || :first, '00000000-0000-0000-0000-000000000001', i / 65536, 'tenant-' || i % 1000,
  array_agg(decode(repeat('a7', 100), 'hex'))
from generate_series(:first, :last) i group by 3, 4;
select * from lonnymq.message_publish('load ' || :first, '{00000000-0000-0000-0000-000000000001}', array[:last - :first + 1]);

-- [prepare]
\ir lonnymq_fold.sql

-- [worsen]
do $$
declare
  v_left bigint := :rows / 2;
  v_ids bigint[];
  v_tokens bigint[];
begin
  while v_left > 0 loop
    select array_agg(message_id), array_agg(token) into v_ids, v_tokens
    from lonnymq.message_dequeue(least(v_left, 500)::integer, 600000, null, false);
    commit;
    perform from lonnymq.message_complete(v_ids, v_tokens);
    commit;
    v_left := v_left - cardinality(v_ids);
  end loop;
end
$$;

-- [pick]
select message_id, content from lonnymq.message_dequeue(1, 600000, null, false);
