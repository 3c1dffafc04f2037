"""What has become of messages, and their results."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from lonnymq.calls import argument
from lonnymq.calls.codec import Codec, decode_content, encode_payload
from lonnymq.calls.statement import Call, call, function
from lonnymq.errors import MessageBuried, MessageCancelled, NotFinished, ResultUnknown, invalid
from lonnymq.model import LeasedMessage, MessageReport, MessageStatus, Progress
from lonnymq.texts import truncate

# The header by which a producer asks for a result (see sql/functions/result_keep_ms.sql).
KEEP_HEADER = "lonnymq-keep-result-ms"
MAX_KEEP = timedelta(days=7)
VALID_KEEP = re.compile("[0-9]{1,10}")
MAX_RESULT_BYTES = 1024 * 1024


class _OnlyOutcome(bytes):
    """A result without content, unlike b"", which a codec may return for an empty value."""


ONLY_OUTCOME = _OnlyOutcome()

STATUS_OF = function(
    "message_status_of",
    "message_id, status, attempt, worker, at, error, progress, progress_note, content",
    p_ids="bigint[]",
)
# For roles that may not see results.
STATUS_OUTLINE = function(
    "message_status_outline",
    "message_id, status, attempt, worker, at, error, progress, progress_note",
    p_ids="bigint[]",
)
EVENT = function("result_event", "*")


def status_of(ids: Sequence[int], *, has_results: bool = True) -> Call[list[MessageReport]]:
    statement = STATUS_OF if has_results else STATUS_OUTLINE
    return call(statement, list(ids), decode=lambda rows: [report(row) for row in rows])


def event() -> Call[str]:
    """Return the notification channel on which results are announced."""
    return call(EVENT, decode=lambda rows: str(rows[0][0]))


def keep_header(keep_result: timedelta | float | None) -> dict[str, str]:
    """Return the header that asks for a result; none if there is nothing to keep."""
    if keep_result is None:
        return {}
    milliseconds = argument.delay_ms("keep_result", keep_result)
    if not milliseconds or not 1 <= milliseconds <= MAX_KEEP // argument.MILLISECOND:
        raise invalid("keep_result", keep_result, f"more than 0 and at most {MAX_KEEP.days} days")
    return {KEEP_HEADER: str(milliseconds)}


def is_wanted(message: object) -> bool:
    """Whether the producer of a leased message asked for its result; a bare lease does not tell."""
    if not isinstance(message, LeasedMessage):
        return True
    # Most messages are told apart without decoding their headers.
    if KEEP_HEADER not in (message.headers_json or ""):
        return False
    return VALID_KEEP.fullmatch(str(message.headers.get(KEEP_HEADER))) is not None


def encode_result(value: Any, codec: Codec) -> bytes:
    """Return what is kept: of None only the outcome, because not every codec can encode it."""
    if value is None or value is ONLY_OUTCOME:
        return ONLY_OUTCOME
    content = encode_payload("result", value, codec)
    if len(content) > MAX_RESULT_BYTES:
        raise invalid(
            "result", f"{len(content)} bytes", f"at most {MAX_RESULT_BYTES} bytes; keep it in a table"
        )
    return content


def with_keep_header(
    headers: Mapping[str, str] | None, keep_result: timedelta | float | None
) -> Mapping[str, str] | None:
    """Return the headers of a message, with the one that asks for its result."""
    return headers if keep_result is None else {**(headers or {}), **keep_header(keep_result)}


def require_result(report: MessageReport, codec: Codec) -> Any:
    """Return the result of a message that has completed; raise if there is none."""
    described = f"message {report.id}"
    if report.status.is_live:
        raise NotFinished(f"{described} has not ended: it is {report.status}")
    if report.status is MessageStatus.BURIED:
        raise MessageBuried(
            f"{described} was buried: {truncate(report.error or 'no error', 2000)}", report.error
        )
    if report.status is MessageStatus.CANCELLED:
        raise MessageCancelled(f"{described} was cancelled")
    if report.status is MessageStatus.UNKNOWN:
        raise ResultUnknown(
            f"{described} never existed, or it has ended and its result was not kept or has expired"
            " (enqueue it with keep_result=)"
        )
    if report.result_content is None:
        return None
    return decode_content(report.result_content, codec, "result", report.id)


def report(row: tuple[Any, ...]) -> MessageReport:
    """Return what a row of message_status_of says."""
    id_, status, attempt, worker, at, error, progress, note = row[:8]
    return MessageReport(
        id=id_,
        status=MessageStatus(status),
        attempt=attempt,
        worker=worker,
        at=_instant(at),
        error=error,
        result_content=row[8] if len(row) > 8 else None,
        progress=None if progress is None else Progress(round(progress, 4), note or ""),
    )


def _instant(milliseconds: int | None) -> datetime | None:
    if milliseconds is None or milliseconds < 0:
        return None
    try:
        return argument.instant(milliseconds)
    except OverflowError:
        return None
