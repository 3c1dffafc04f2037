"""The message that the current code processes, for code that is not given the message itself."""

from contextvars import ContextVar

from lonnymq.client.aio import AsyncMessage
from lonnymq.client.sync import Message
from lonnymq.errors import LonnyError, WrongClient

CURRENT: ContextVar[AsyncMessage | Message] = ContextVar("lonnymq.current_message")


def current_message() -> Message:
    """Return the message of the running handler, a plain function; in a batch handler, the first message."""
    message = _current()
    if isinstance(message, Message):
        return message
    raise WrongClient("this code runs on the worker's event loop: call current_async_message() instead")


def current_async_message() -> AsyncMessage:
    """Return the message of the running handler, an `async def`; in a batch handler, the first message.

    Middleware calls this one too, because it runs on the event loop.
    """
    message = _current()
    if isinstance(message, AsyncMessage):
        return message
    raise WrongClient("this code runs in a thread of the worker: call current_message() instead")


def _current() -> AsyncMessage | Message:
    try:
        return CURRENT.get()
    except LookupError:
        raise LonnyError(
            "there is no current message: this code was not called by a worker's handler or middleware"
        ) from None
