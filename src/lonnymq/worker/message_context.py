"""The message that the running handler works on, wherever it is asked for."""

from contextvars import ContextVar

from lonnymq.client.aio import AsyncMessage
from lonnymq.client.sync import Message
from lonnymq.errors import LonnyError

CURRENT: ContextVar[AsyncMessage | Message] = ContextVar("lonnymq.current_message")


def current_message() -> Message:
    """Return the message that is being worked by a plain function; in a batch handler, the first one."""
    message = _current()
    if isinstance(message, Message):
        return message
    raise LonnyError("this code runs on the worker's event loop: call current_async_message() instead")


def current_async_message() -> AsyncMessage:
    """Return the message that is being worked by an `async def`; in a batch handler, the first one.

    Middleware runs on the event loop, so it calls this one too.
    """
    message = _current()
    if isinstance(message, AsyncMessage):
        return message
    raise LonnyError("this code runs in a thread of the worker: call current_message() instead")


def _current() -> AsyncMessage | Message:
    try:
        return CURRENT.get()
    except LookupError:
        raise LonnyError(
            "no message is being worked here: this is not called by a worker's handler"
        ) from None
