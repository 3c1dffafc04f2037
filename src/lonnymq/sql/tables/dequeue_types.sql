-- The values that the parts of message_dequeue hand to one another. No table stores them.

-- wake_total: the wakes of one channel, added up. due_at is when the channel becomes due because of them; at, first_id,
-- to_at and to_id bound the messages they announce; looks counts the wakes that ask for a look regardless of messages.
create type wake_total as (
  done bigint, waiting bigint, due_at bigint, at bigint, first_id bigint, to_at bigint, to_id bigint, is_late boolean,
  looks bigint, last_id bigint, channel_name text, wakes tid[]
);

-- turn_state: a locked turn with its wakes added, and what the channel's policy allows it now (see turn_assess).
create type turn_state as (
  tid tid, channel_id bigint, due_at bigint, last_at bigint, release_at bigint, mark_at bigint, mark_id bigint,
  late_at bigint, late_id bigint, late_to bigint, late_to_id bigint, in_flight bigint, waiting bigint,
  has_uncapped boolean, wake_id bigint, had integer,
  name text, weight integer, max_attempts integer, interval_us bigint, spare_us bigint, free bigint, room bigint,
  is_nameless boolean, wakes tid[]
);

-- turn_plan: a turn_state, and what the turn gets: its share of the reply, its next place in the rotation, what it will
-- have taken of a turn that the reply cuts, and its place in the reply. The fields of turn_state come first: a row of a
-- turn_state and the other four is cast to it.
create type turn_plan as (
  tid tid, channel_id bigint, due_at bigint, last_at bigint, release_at bigint, mark_at bigint, mark_id bigint,
  late_at bigint, late_id bigint, late_to bigint, late_to_id bigint, in_flight bigint, waiting bigint,
  has_uncapped boolean, wake_id bigint, had integer,
  name text, weight integer, max_attempts integer, interval_us bigint, spare_us bigint, free bigint, room bigint,
  is_nameless boolean, wakes tid[],
  share integer, served_at bigint, taken integer, place bigint
);

-- settlement: the messages to lease, in the order to work them. places says for each which element of the later arrays,
-- one per turn, belongs to it. is_cut: the reply is full, although the caller asked for more.
create type settlement as (
  settled_at bigint, messages tid[], ids bigint[], places integer[],
  channel_ids bigint[], names text[], max_attempts integer[], intervals bigint[], are_capped boolean[],
  name_bytes integer, is_cut boolean
);

-- lane_pass: how far a session has read the wakes of one lane. A pass goes on at next_id; low_id is the lowest wake it has
-- found, null between two passes; it ends at stop_id, whatever is added meanwhile.
create type lane_pass as (next_id bigint, low_id bigint, stop_id bigint);

-- dequeue_hints: what a session remembers between two calls of message_dequeue.
create type dequeue_hints as (
  full_at bigint,         -- when it last looked at everything from the start,
  full_cost bigint,       -- and how long that took
  turn_at bigint,         -- no turn that is due has a lower next_at
  sweep_at bigint,        -- when to look for stamps from the future again,
  rewind_channel_id bigint, rewind_at bigint, rewind_id bigint,  -- and where message_rewind goes on
  soon lane_pass,         -- its pass over the wakes of lane 0,
  bulk lane_pass,         -- and of lane 1
  pid integer             -- the session's process
);
