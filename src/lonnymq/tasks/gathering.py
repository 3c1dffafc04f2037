"""What the callback of a group receives: the results of the members, if all of them have completed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lonnymq.calls.codec import decode_content
from lonnymq.errors import InvalidArgument, invalid
from lonnymq.model import MessageReport, MessageStatus
from lonnymq.texts import one_line
from lonnymq.worker.handler import Bury

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.client.sync import Message

# How many members without a result an error describes.
MAX_DESCRIBED = 3


def is_callback(message: "AsyncMessage | Message") -> bool:
    """Whether a task's message says that it is the callback of a group."""
    return message.payload.get("group") is not None


@contextmanager
def buried_if_too_large() -> Iterator[None]:
    """Raise Bury if the queue refuses to return the results: a retry would fail in the same way."""
    try:
        yield
    except InvalidArgument as error:
        raise Bury(f"the results of its group cannot be read: {error}") from error


def gathered_arguments(message: "AsyncMessage | Message", reports: Sequence[MessageReport]) -> Any:
    """Return the arguments of a callback, with the results of its group; raise Bury if one is missing."""
    part = message.payload["group"]
    if not isinstance(part, dict) or not isinstance(part.get("takes", ""), str):
        raise invalid("group", part, 'an object such as {"takes": name}')
    if not reports:
        raise Bury("its group is unknown, or has expired with its results")
    failed = [report for report in reports if report.status is not MessageStatus.COMPLETED]
    if failed:
        described = "; ".join(map(_describe, failed[:MAX_DESCRIBED]))
        raise Bury(f"{len(failed)} of {len(reports)} members of its group have no result: {described}")
    arguments = message.payload.get("arguments", {})
    if "takes" not in part or not isinstance(arguments, dict):
        return arguments
    codec = message.queue.codec
    results = [
        None
        if report.result_content is None
        else decode_content(report.result_content, codec, "result", report.id)
        for report in reports
    ]
    return {**arguments, part["takes"]: results}


def _describe(report: MessageReport) -> str:
    member = f"message {report.id}"
    match report.status:
        case MessageStatus.BURIED:
            lines = (report.error or "").rstrip().splitlines() or ["no error"]
            return f"{member} was buried: {one_line(lines[-1])}"
        case MessageStatus.CANCELLED:
            return f"{member} was cancelled"
        case MessageStatus.UNKNOWN:
            return f"{member} has ended, and its result is not known any more"
    return f"{member} has not ended: it is {report.status}"
