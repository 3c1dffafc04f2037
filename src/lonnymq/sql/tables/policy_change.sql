-- policy_change: a change of the queue's default policy that has not been announced to all channels yet. Written by
-- queue_set; full scans of dequeue announce it (see policy_announce).
-- While nobody has taken an id from its sequence, there has been no default policy and no lifted limit, and the values
-- in the table channel are all there is. Dequeue asks the sequence, because reading the settings, too, would cost each
-- call 3 per cent. It never misses a change: the sequence is advanced before that commits, and never set back.
create table policy_change (
  id bigint generated always as identity primary key,
  -- The channels up to this id have been looked at.
  passed_id bigint not null default -9223372036854775808,
  -- Null in the first pass. The second one waits until all transactions below have ended.
  horizon bigint
);
