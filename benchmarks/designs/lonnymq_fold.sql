-- Included by other files. Brings the queue to the state after the first turn of every channel, in which the messages
-- have been folded into turns. A call without hints starts a full scan, and creates at most 128 new turns.
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
