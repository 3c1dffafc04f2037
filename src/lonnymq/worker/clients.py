"""The clients of a worker: an asyncio one for itself, a blocking one for handlers in threads."""

from dataclasses import dataclass
from typing import Any, NoReturn

from lonnymq.calls.codec import JSON, Codec
from lonnymq.client.aio import AsyncQueue
from lonnymq.client.settings import ClientSettings
from lonnymq.client.sync import Queue
from lonnymq.errors import LonnyError, invalid

EXPECTED = "a connection string, an AsyncQueue, or a Queue that was made from a connection string"


@dataclass(frozen=True)
class Clients:
    """How to reach a queue: what a client is made from, or one that the caller has made."""

    # A connection string, or what else an AsyncQueue takes.
    target: Any
    schema: str = "lonnymq"
    codec: Codec = JSON
    settings: ClientSettings | None = None
    given: AsyncQueue | Queue | None = None

    @classmethod
    def of(cls, queue: "AsyncQueue | Queue | str | Clients") -> "Clients":
        if isinstance(queue, Clients):
            return queue
        if isinstance(queue, str):
            return cls(queue)
        if not isinstance(queue, AsyncQueue | Queue):
            raise invalid("queue", queue, EXPECTED)
        target = queue.caller.source.target
        if isinstance(queue, Queue) and not isinstance(target, str):
            raise invalid("queue", queue, EXPECTED)
        return cls(target, queue.schema, queue.codec, queue.caller.settings, queue)

    def queue(self) -> AsyncQueue:
        """The given one, if it is of this kind: handlers then share its pool."""
        return (
            self.given if isinstance(self.given, AsyncQueue) else AsyncQueue(self.target, **self._options())
        )

    def twin(self) -> Queue:
        """The blocking client; it connects only if a handler in a thread uses it without a connection."""
        if isinstance(self.given, Queue):
            return self.given
        target = self.target if isinstance(self.target, str) else _refuse
        return Queue(target, **self._options())

    def _options(self) -> dict[str, Any]:
        return {"schema": self.schema, "codec": self.codec, "settings": self.settings}


def _refuse() -> NoReturn:
    raise LonnyError(
        "this worker's queue was made from an asyncio pool or function, which a plain handler cannot use: "
        "give connection=, make the handler async, or make the queue from a connection string"
    )
