"""The clients of a worker: some for itself, an asyncio one and a blocking one for its handlers."""

import inspect
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from psycopg import AsyncConnection

from lonnymq.calls.codec import JSON, Codec
from lonnymq.client.aio import AsyncQueue
from lonnymq.client.sync import Queue
from lonnymq.connections.callers_pool import is_async_callers_pool
from lonnymq.connections.settings import ClientSettings
from lonnymq.errors import LonnyError, invalid_kind

EXPECTED = "a connection string, an AsyncQueue, or a Queue that was made from a connection string"


@dataclass(frozen=True)
class ClientFactory:
    """How to reach a queue: what a client is made from, or one that the caller has made."""

    # A connection string, or what else an AsyncQueue takes.
    target: Any = field(repr=False)
    schema: str = "lonnymq"
    codec: Codec = JSON
    settings: ClientSettings | None = None
    given: AsyncQueue | Queue | None = field(default=None, repr=False)

    @classmethod
    def of(cls, queue: "AsyncQueue | Queue | str | ClientFactory") -> "ClientFactory":
        if isinstance(queue, ClientFactory):
            return queue
        if isinstance(queue, str):
            return cls(queue)
        if not isinstance(queue, AsyncQueue | Queue):
            raise invalid_kind("queue", queue, EXPECTED)
        target = queue.caller.source.target
        if isinstance(queue, Queue) and not isinstance(target, str):
            raise invalid_kind("queue", queue, EXPECTED)
        return cls(target, queue.schema, queue.codec, queue.caller.settings, queue)

    def async_queue(self) -> AsyncQueue:
        """The client of async handlers: the given one, if it is of this kind."""
        return self.given if isinstance(self.given, AsyncQueue) else self._create(self.target)

    def internal_queue(self, connections: int) -> AsyncQueue:
        """A client for the worker itself, whose connections no handler can use up."""
        settings = replace(self.settings or ClientSettings(), pool_min_size=1, pool_max_size=connections)
        return self._create(_connector(self.target), settings)

    def blocking_queue(self) -> Queue:
        """The blocking client; it connects only if a handler in a thread uses it without a connection."""
        if isinstance(self.given, Queue):
            return self.given
        target = self.target if isinstance(self.target, str) else _refuse
        return Queue(target, schema=self.schema, codec=self.codec, settings=self.settings)

    def _create(self, target: Any, settings: ClientSettings | None = None) -> AsyncQueue:
        return AsyncQueue(target, schema=self.schema, codec=self.codec, settings=settings or self.settings)


def _connector(target: Any) -> Any:
    """Return a target that connects as this one does, but shares no pool with it."""
    if not is_async_callers_pool(target):
        return target

    async def connect() -> AsyncConnection[Any]:
        conninfo, options = await _resolved(target.conninfo), await _resolved(target.kwargs)
        connection: AsyncConnection[Any] = await target.connection_class.connect(conninfo, **(options or {}))
        configure = getattr(target, "_configure", None)
        if configure is not None:
            try:
                await configure(connection)
            except BaseException:
                await connection.close()
                raise
        return connection

    return connect


async def _resolved(value: Any) -> Any:
    """A pool takes functions in place of its parameters, async or not."""
    value = value() if callable(value) else value
    return await value if inspect.isawaitable(value) else value


def _refuse() -> NoReturn:
    raise LonnyError(
        "this worker's queue was made from an asyncio pool or function, which a plain handler cannot use: "
        "give connection=, make the handler async, or make the queue from a connection string"
    )
