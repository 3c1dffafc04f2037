"""Groups: messages of which the last one that ends releases another message, the callback."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lonnymq.calls import argument
from lonnymq.calls.draft import Draft
from lonnymq.calls.result import MAX_KEEP, report
from lonnymq.calls.statement import Call, array, call, function
from lonnymq.errors import invalid
from lonnymq.model import CreatedGroup, CreateOutcome, GroupOutcome, LeasedMessage, MessageReport

MAX_MEMBERS = 1000
# How many groups a sweep looks at.
MAX_SWEPT = 100
# How large the results of a group may be together.
MAX_RESULTS_BYTES = 16 * 1024 * 1024
# The header of a member that has the id of its group's callback.
GROUP_HEADER = "lonnymq-group"
VALID_ID = re.compile("[0-9]{1,18}")

CREATE = function(
    "group_create",
    "outcome, message_id, member_ids",
    p_channels="text[]",
    p_contents="bytea[]",
    p_callback_channel="text",
    p_callback_content="bytea",
    p_dequeue_ats="bigint?[]",
    p_delays_ms="bigint?[]",
    p_max_attempts="integer?[]",
    p_headers="text[]::jsonb[]",
    p_callback_key="text",
    p_callback_max_attempts="integer",
    p_callback_headers="jsonb",
    p_deadline_ms="bigint",
)
CHECK = function("group_check", "callback_id, outcome", p_ids="bigint[]")
SWEEP = function("group_sweep", p_limit="integer")
RESULTS = function(
    "group_results",
    "message_id, status, attempt, worker, at, error, progress, progress_note, content",
    p_message_id="bigint",
    p_token="bigint",
    p_max_bytes="bigint",
)


def create(members: Sequence[Draft], callback: Draft, deadline: timedelta | float) -> Call[CreatedGroup]:
    """Create a group; a key of its callback makes this safe to repeat."""
    if not 1 <= len(members) <= MAX_MEMBERS:
        raise invalid("members", f"{len(members)} messages", f"1 to {MAX_MEMBERS} messages")
    for index, one in enumerate(members):
        if one.key is not None:
            raise invalid(f"members[{index}]: key", one.key, "absent: only the callback may have a key")
    if callback.dequeue_at is not None or callback.delay_ms is not None:
        raise invalid("the callback", "a time or a priority", "due when the members have ended")
    deadline_ms = argument.delay_ms("deadline", deadline)
    if not deadline_ms or deadline_ms > MAX_KEEP // argument.MILLISECOND:
        raise invalid("deadline", deadline, f"more than 0 and at most {MAX_KEEP.days} days")
    channels, contents, dequeue_ats, delays_ms, _, max_attempts, headers = zip(*members, strict=True)
    return call(
        CREATE,
        channels,
        contents,
        callback.channel,
        callback.content,
        array(dequeue_ats),
        array(delays_ms),
        array(max_attempts),
        array(headers),
        callback.key,
        callback.max_attempts,
        callback.headers,
        deadline_ms,
        decode=lambda rows: CreatedGroup(CreateOutcome(rows[0][0]), rows[0][1], tuple(rows[0][2] or ())),
        is_repeatable=callback.key is not None,
    )


def check(ids: Sequence[int]) -> Call[dict[int, GroupOutcome]]:
    """Release the callbacks with these ids whose members have all ended."""
    return call(CHECK, ids, decode=lambda rows: {id_: GroupOutcome(outcome) for id_, outcome in rows})


def sweep() -> Call[int]:
    """Look at groups that nobody has checked; return in how many milliseconds to call again."""
    return call(SWEEP, MAX_SWEPT, decode=lambda rows: int(rows[0][0]))


def results(callback_id: int, token: int) -> Call[list[MessageReport]]:
    """Return what has become of the members, in their order; nothing if this is not a group's callback."""
    return call(
        RESULTS, callback_id, token, MAX_RESULTS_BYTES, decode=lambda rows: [report(row) for row in rows]
    )


def group_of(message: object) -> int | None:
    """Return the id of the callback of a leased message's group, if it says that it is a member of one."""
    # Most messages are told apart without decoding their headers.
    if not isinstance(message, LeasedMessage) or GROUP_HEADER not in (message.headers_json or ""):
        return None
    written: Any = message.headers.get(GROUP_HEADER)
    return int(written) if isinstance(written, str) and VALID_ID.fullmatch(written) else None
