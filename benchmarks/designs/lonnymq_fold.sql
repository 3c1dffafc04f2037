-- Part of others: the queue after the first turn of every channel, when what was loaded has been folded into turns.
-- Each call without hints looks at everything; a call makes at most 128 new turns.
do $$
begin
  for round in 1..1000000 loop
    exit when not exists (select from lonnymq.wake);
    perform from lonnymq.message_dequeue(128, 600000, null, false);
    commit;
    reset all;
  end loop;
end
$$;
