-- The values that the parts of message_dequeue pass to one another. No table stores them.

-- wake_total: the wakes of one channel, added up.
--   due_at                            when they make the channel due (milliseconds)
--   from_at, from_id, to_at, to_id    the range of the messages that they announce
--   is_late                           the range begins at or below the mark
--   look_requests                     how many ask for a look at the channel whether or not there are new messages
create type wake_total as (
  done bigint, waiting bigint, due_at bigint, from_at bigint, from_id bigint, to_at bigint, to_id bigint,
  is_late boolean, look_requests bigint, last_wake_id bigint, channel_name text, wakes tid[]
);

-- turn_state: a locked turn with its wakes added, and what the channel's policy allows now (see turn_assess).
--   due_at          since when the turn has been due; null if the channel is paused
--   taken_before    messages already served of a turn that the end of an earlier reply interrupted
--   is_returning    the channel was idle or is new, and has not been served since
--   turn_size       how many messages a turn of the channel is worth
--   tolerance_us    rate limit: how far ahead of evenly spaced releases a burst may run
--   cap_left        messages that the cap still allows; null without a cap
--   allowed         messages that the cap and the rate limit allow now
--   is_new_channel  the channel has no row in the table channel yet
create type turn_state as (
  tid tid, channel_id bigint, due_at bigint, last_at bigint, release_at bigint, mark_at bigint, mark_id bigint,
  late_at bigint, late_id bigint, late_to bigint, late_to_id bigint, in_flight bigint, waiting bigint,
  has_uncapped boolean, wake_id bigint, taken_before integer, is_returning boolean,
  name text, turn_size integer, max_attempts integer, interval_us bigint, tolerance_us bigint, cap_left bigint,
  allowed bigint, is_new_channel boolean, wakes tid[]
);

-- turn_allocation: a turn_state and what the turn is given. The fields of turn_state come first, so that a turn_state
-- followed by the other four values can be cast to it.
--   share        how many messages the turn may have; null or 0: none, and its messages are not read
--   served_at    the turn's next position in the rotation
--   taken_after  taken_before for the next call, if the end of this reply interrupts the turn
--   ordinal      the turn's index in the arrays of settlement
create type turn_allocation as (
  tid tid, channel_id bigint, due_at bigint, last_at bigint, release_at bigint, mark_at bigint, mark_id bigint,
  late_at bigint, late_id bigint, late_to bigint, late_to_id bigint, in_flight bigint, waiting bigint,
  has_uncapped boolean, wake_id bigint, taken_before integer, is_returning boolean,
  name text, turn_size integer, max_attempts integer, interval_us bigint, tolerance_us bigint, cap_left bigint,
  allowed bigint, is_new_channel boolean, wakes tid[],
  share integer, served_at bigint, taken_after integer, ordinal bigint
);

-- settlement: the messages to lease, in the order in which to process them, and the turns they belong to.
--   messages, ids, turn_ordinals  one element per message; turn_ordinals are indexes in the arrays per turn
--   channel_ids to are_capped     one element per turn
--   is_reply_full                 the reply can hold no more, although the caller asked for more
--   min_return_at                 a lower bound of due_at of the returning turns that got nothing, or null
create type settlement as (
  settled_at bigint, messages tid[], ids bigint[], turn_ordinals integer[],
  channel_ids bigint[], names text[], max_attempts integer[], intervals_us bigint[], are_capped boolean[],
  name_bytes integer, is_reply_full boolean, min_return_at bigint
);

-- lane_pass: how far a session has read the wakes of one lane. The pass continues at next_id and ends at stop_id,
-- whatever is added meanwhile. lowest_id is the lowest wake that it has found, null between two passes.
create type lane_pass as (next_id bigint, lowest_id bigint, stop_id bigint);

-- dequeue_hints: what a session remembers between two calls of message_dequeue.
create type dequeue_hints as (
  full_scan_at bigint,       -- when its last full scan began
  full_scan_us bigint,       -- how long that took
  min_next_at bigint,        -- no due turn has a lower next_at
  min_return_at bigint,      -- no turn has a lower return_at; null: there seems to be no turn that returns
  skipped_rotation boolean,  -- the last reply was for one message, and a returning channel got it
  quantum integer,           -- the setting
  clock_check_at bigint,     -- when to look for timestamps from the future again (see clock_step_fix)
  clock_check_channel_id bigint, clock_check_dequeue_at bigint, clock_check_id bigint,  -- where that search continues
  soon lane_pass,            -- its pass over the wakes of lane 0
  bulk lane_pass,            -- its pass over the wakes of lane 1
  pid integer                -- the process of the session
);
