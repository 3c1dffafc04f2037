"""What an instrumentation of a client must have; `lonnymq.telemetry.tracing` is one."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from lonnymq.client.enqueueing import Enclosing
from lonnymq.model import Lease, LeasedMessage, NewMessage


class Instrumentation(Protocol):
    """Notified of what a client and its workers do. Times are nanoseconds since 1970."""

    def enqueue(self, messages: Iterable[NewMessage]) -> Enclosing:
        """Run around each call that enqueues, outside of the middleware."""

    def dequeued(self, messages: Sequence[LeasedMessage], started_ns: int) -> None:
        """Be told of messages that were leased."""

    async def process(
        self, handler: str, messages: Sequence[LeasedMessage], call: Callable[[], Awaitable[None]]
    ) -> None:
        """Run around each call of a handler, outside of the worker's middleware."""

    def settled(
        self, action: str, leases: Sequence[Lease], started_ns: int, error: BaseException | None
    ) -> None:
        """Be told that attempts were ended, or of the error that prevented it."""
