"""The message that the running handler works on, wherever it is asked for."""

from contextvars import ContextVar
from typing import TYPE_CHECKING

from lonnymq.errors import LonnyError

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.client.sync import Message

CURRENT: "ContextVar[AsyncMessage | Message]" = ContextVar("lonnymq.current_message")


def current_message() -> "AsyncMessage | Message":
    """Return the message that is being worked: a Message in a plain function, an AsyncMessage elsewhere.

    In a batch handler it is the first one.
    """
    try:
        return CURRENT.get()
    except LookupError:
        raise LonnyError(
            "no message is being worked here: this is not called by a worker's handler"
        ) from None
