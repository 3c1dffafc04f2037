"""Drafts: new messages as the queue stores them, encoded, with one number for time and priority."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from lonnymq.calls import argument
from lonnymq.calls.codec import Codec, encode_payload
from lonnymq.calls.headers import encode_headers
from lonnymq.calls.result import with_keep_header
from lonnymq.errors import InvalidArgument, invalid
from lonnymq.model import NewMessage

NEW_MESSAGES = "a sequence of NewMessage values"


class Draft(NamedTuple):
    channel: str
    content: bytes
    dequeue_at: int | None
    delay_ms: int | None
    key: str | None
    max_attempts: int | None
    headers: str | None = None


def draft(message: NewMessage, codec: Codec) -> Draft:
    """Check a new message and encode it."""
    if not isinstance(message, NewMessage):
        raise invalid("messages", message, NEW_MESSAGES)
    return Draft(
        argument.channel(message.channel),
        encode_payload("payload", message.payload, codec),
        _dequeue_at(message.at, message.delay, message.priority),
        argument.delay_ms("delay", message.delay),
        argument.optional_text("key", message.key, 1, 255),
        argument.optional_whole("max_attempts", message.max_attempts, 1, argument.MAX_INTEGER),
        encode_headers(with_keep_header(message.headers, message.keep_result)),
    )


def drafts(messages: Iterable[NewMessage], codec: Codec) -> Iterator[Draft]:
    """Check and encode many messages; an error says which of them is invalid."""
    for index, message in enumerate(messages):
        try:
            checked = draft(message, codec)
        except InvalidArgument as error:
            raise InvalidArgument(f"messages[{index}]: {error}") from error.__cause__
        yield checked


def _dequeue_at(at: datetime | None, delay: timedelta | float | None, priority: Any) -> int | None:
    if (at is not None) + (delay is not None) + (priority is not None) > 1:
        given = {"at": at, "delay": delay, "priority": priority}
        names = [name for name, value in given.items() if value is not None]
        raise InvalidArgument(f"only one of at, delay and priority may be given, got {' and '.join(names)}")
    if priority is not None:
        # There is no column for a priority: a negative dequeue_at sorts before every time.
        return -argument.whole("priority", priority, 1, argument.MAX_DEQUEUE_AT)
    return None if at is None else argument.epoch_ms("at", at)
