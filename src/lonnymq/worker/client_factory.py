"""Creates the clients that a worker and its handlers use."""

import inspect
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from psycopg import AsyncConnection

from lonnymq.calls.codec import JSON, Codec
from lonnymq.client.aio import AsyncQueue
from lonnymq.client.enqueueing import EnqueueMiddleware
from lonnymq.client.instrumentation import Instrumentation
from lonnymq.client.sync import Queue
from lonnymq.connections.callers_pool import is_async_callers_pool
from lonnymq.connections.settings import ClientSettings
from lonnymq.connections.target import describe_target, dsn_or_environment
from lonnymq.errors import WrongClient, invalid_kind

EXPECTED = "a connection string, an AsyncQueue, or a Queue that was created from a connection string"


@dataclass(frozen=True)
class ClientFactory:
    """How to connect to a queue; picklable unless the caller has given a client."""

    # A connection string, or another target that an AsyncQueue takes.
    target: Any = field(repr=False)
    schema: str = "lonnymq"
    codec: Codec = JSON
    settings: ClientSettings | None = None
    middleware: tuple[EnqueueMiddleware, ...] = ()
    instrumentation: Instrumentation | None = None
    # The client that was passed to the worker, if any.
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
        caller = queue.caller
        middleware, instrumentation = queue.middleware, caller.instrumentation
        return cls(target, queue.schema, queue.codec, caller.settings, middleware, instrumentation, queue)

    @property
    def server(self) -> str:
        """The server of the worker's own client, as it is named when it cannot be reached."""
        return describe_target(dsn_or_environment(_connector(self.target)))

    def async_queue(self) -> AsyncQueue:
        """Return the client of async handlers: the given one if it is an AsyncQueue."""
        return self.given if isinstance(self.given, AsyncQueue) else self._create(self.target)

    def internal_queue(self, connections: int) -> AsyncQueue:
        """Create a client for the worker itself, whose connections handlers cannot exhaust."""
        settings = replace(self.settings or ClientSettings(), pool_min_size=1, pool_max_size=connections)
        return self._create(_connector(self.target), settings)

    def blocking_queue(self) -> Queue:
        """Return the client of handlers in threads; it connects on first use."""
        if isinstance(self.given, Queue):
            return self.given
        target = self.target if isinstance(self.target, str) else _raise_no_blocking_client
        return Queue(
            target,
            schema=self.schema,
            codec=self.codec,
            settings=self.settings,
            middleware=self.middleware,
            instrumentation=self.instrumentation,
        )

    def _create(self, target: Any, settings: ClientSettings | None = None) -> AsyncQueue:
        return AsyncQueue(
            target,
            schema=self.schema,
            codec=self.codec,
            settings=settings or self.settings,
            middleware=self.middleware,
            instrumentation=self.instrumentation,
        )


def _connector(target: Any) -> Any:
    """Return a target that connects in the same way, but does not take connections from the same pool."""
    if not is_async_callers_pool(target):
        return target

    async def connect() -> AsyncConnection[Any]:
        conninfo, options = await _resolve(target.conninfo), await _resolve(target.kwargs)
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


async def _resolve(value: Any) -> Any:
    """Return a parameter of a pool, which may be given as a function, async or not."""
    value = value() if callable(value) else value
    return await value if inspect.isawaitable(value) else value


def _raise_no_blocking_client() -> NoReturn:
    raise WrongClient(
        "the AsyncQueue was created from an asyncio pool or function, which blocking code cannot use:"
        " pass connection=, make the handler async, or create the queue from a connection string"
    )
