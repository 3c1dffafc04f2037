"""Acknowledgements as calls: the statement of each action, and the details per message."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lonnymq.calls.argument import delay_ms, error_text
from lonnymq.calls.codec import Codec, encode_payload
from lonnymq.calls.headers import encode_headers
from lonnymq.calls.result import ONLY_OUTCOME, encode_result
from lonnymq.calls.statement import Call, Rows, Statement, array, call, function
from lonnymq.model import Progress
from lonnymq.model.acknowledge import ACTIONS, COMPLETE, Action, HeartbeatOutcome, Outcome


@dataclass(frozen=True)
class Detail:
    """A value per message: the client's argument (its plural takes one value per message) and SQL's."""

    argument: str
    parameter: str
    type: str
    encode: Callable[[Any, Codec], Any] = lambda value, codec: value


DETAILS = {
    "content": Detail(
        "payload",
        "p_contents",
        "bytea[]",
        lambda value, codec: None if value is None else encode_payload("payload", value, codec),
    ),
    "headers": Detail("headers", "p_headers", "text[]::jsonb[]", lambda value, codec: encode_headers(value)),
    "delay_ms": Detail("delay", "p_delays_ms", "bigint?[]", lambda value, codec: delay_ms("delay", value)),
    "state": Detail(
        "state",
        "p_states",
        "bytea[]",
        lambda value, codec: None if value is None else encode_payload("state", value, codec),
    ),
    "error": Detail("error", "p_errors", "text[]"),
    "result": Detail(
        "result",
        "p_results",
        "bytea[]",
        lambda value, codec: None if value is None else encode_result(value, codec),
    ),
}


def _statement(name: str, done: str, **parameters: str) -> Statement:
    # Almost all acknowledgements take effect, so the reply contains only the others.
    where = f"outcome <> '{done}'"
    return function(
        f"message_{name}", "message_id, outcome", where, p_ids="bigint[]", p_tokens="bigint[]", **parameters
    )


STATEMENTS = {
    action.name: _statement(
        action.name,
        action.done,
        **{DETAILS[name].parameter: DETAILS[name].type for name in action.details},
    )
    for action in ACTIONS
}
# For messages without details, which are most.
STATEMENTS_WITHOUT_DETAILS = {action.name: _statement(action.name, action.done) for action in ACTIONS}
HEARTBEAT = _statement(
    "heartbeat", "extended", p_lease_ms="bigint", p_is_alone="boolean", p_is_durable="boolean"
)
HEARTBEAT_WITH_PROGRESS = _statement(
    "heartbeat",
    "extended",
    p_lease_ms="bigint",
    p_is_alone="boolean",
    p_is_durable="boolean",
    p_progress="real?[]",
    p_notes="text[]",
)


def acknowledge(
    action: Action[Outcome], ids: Sequence[int], tokens: Sequence[int], *details: Sequence[Any]
) -> Call[list[Outcome]]:
    """End attempts; `details` are encoded. On a retry, `lease_lost` may be due to the first attempt."""
    columns = [
        array(map(error_text, values) if DETAILS[name].type == "text[]" else values)
        for name, values in zip(action.details, details, strict=True)
    ]
    statements = STATEMENTS
    if not any(value is not None for values in details for value in values):
        statements, columns = STATEMENTS_WITHOUT_DETAILS, []
    elif action is COMPLETE:
        columns = [[None if value is ONLY_OUTCOME else value for value in details[0]]]
    return call(
        statements[action.name],
        ids,
        tokens,
        *columns,
        decode=_outcomes(ids, action.done),
        is_unsure=lambda answers: "lease_lost" in answers,
    )


def heartbeat(
    ids: Sequence[int],
    tokens: Sequence[int],
    lease_ms: int,
    is_alone: bool = False,
    is_durable: bool = True,
    progress: Sequence[Progress | None] = (),
) -> Call[list[HeartbeatOutcome]]:
    """Extend leases. `is_alone`: from now on each message is the only one in its process.

    `progress` has what each attempt reported since its last heartbeat, if any did.
    """
    decode = _outcomes(ids, HeartbeatOutcome.EXTENDED)
    if any(progress):
        fractions = [None if one is None else one.fraction for one in progress]
        notes = [None if one is None else one.note for one in progress]
        lease = (lease_ms, is_alone, is_durable)
        return call(HEARTBEAT_WITH_PROGRESS, ids, tokens, *lease, fractions, notes, decode=decode)
    return call(HEARTBEAT, ids, tokens, lease_ms, is_alone, is_durable, decode=decode)


def _outcomes(ids: Sequence[int], done: Outcome) -> Callable[[Rows], list[Outcome]]:
    def decode(rows: Rows) -> list[Outcome]:
        others = {id_: type(done)(outcome) for id_, outcome in rows}
        return [others.get(id_, done) for id_ in ids]

    return decode
