"""Where connections come from: a pool of ours, the caller's pool, or a pool over the caller's factory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from lonnymq.client.failure import is_stale
from lonnymq.client.settings import ClientSettings, connection_options
from lonnymq.errors import ConnectionLost, LonnyError, invalid

AsyncPool = AsyncConnectionPool[AsyncConnection[Any]]
AsyncTarget = str | AsyncPool | Callable[[], Awaitable[AsyncConnection[Any]]]


class AsyncSource:
    """Lends connections in autocommit mode, none of them known to be dead."""

    def __init__(self, target: AsyncTarget, settings: ClientSettings) -> None:
        self.target = target
        self._settings = settings
        self._is_ours = not isinstance(target, AsyncConnectionPool)
        self._is_closed = False
        # Until a first connection was made, an address is more likely wrong than a server away.
        self.was_reached = not self._is_ours
        self._opening = asyncio.Lock()
        self._connect: Callable[[], Awaitable[AsyncConnection[Any]]] | None = None
        if isinstance(target, AsyncConnectionPool):
            self._pool: AsyncPool = target
        elif isinstance(target, str):
            options = connection_options(target, settings)
            self._connect = lambda: AsyncConnection.connect(target, **options)
            self._pool = self._pool_of(AsyncConnection, target, options)
        elif callable(target):
            self._connect = target
            self._pool = self._pool_of(_made_by(target), "", {})
        else:
            raise invalid(
                "dsn", target, "a connection string, a psycopg_pool pool, or a function that connects"
            )

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Lend a connection of the pool."""
        connection = await self._taken()
        was_autocommit = connection.autocommit
        try:
            if not was_autocommit:
                await connection.set_autocommit(True)
            yield connection
        finally:
            if not was_autocommit and not connection.closed:
                await connection.set_autocommit(False)
            await self._pool.putconn(connection)

    @asynccontextmanager
    async def dedicated(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Lend a connection that may keep state, since nobody gets it afterwards."""
        if self._connect is not None:
            connection = await self._connected()
            try:
                await connection.set_autocommit(True)
                yield connection
            finally:
                await connection.close()
        else:
            connection = await self._taken()
            try:
                await connection.set_autocommit(True)
                yield connection
            finally:
                await connection.close()
                await self._pool.putconn(connection)

    async def renew(self) -> None:
        """One of our connections is silent: do not wait for the idle ones, which went the same way."""
        drain = getattr(self._pool, "drain", None)  # since psycopg_pool 3.3
        if self._is_ours and drain is not None and not self._pool.closed:
            await drain()

    async def close(self) -> None:
        """Close what is ours."""
        self._is_closed = True
        if self._is_ours:
            await self._pool.close()

    async def _taken(self) -> AsyncConnection[Any]:
        await self._opened()
        while True:
            try:
                connection = await self._pool.getconn(timeout=self._settings.retry_for_s)
            except PoolTimeout as error:
                # The pool does not say why. If the server can be reached, its connections are all in use.
                await self._probe()
                raise _unreachable(error) from error
            if not is_stale(connection):
                return connection
            await connection.close()
            await self._pool.putconn(connection)

    async def _opened(self) -> None:
        if self._is_closed:
            raise LonnyError("this queue is closed")
        if self._is_ours and self._pool.closed:
            async with self._opening:
                if not self.was_reached:
                    await self._probe()
                await self._pool.open()

    async def _probe(self) -> None:
        """Connect once, for the sake of the error."""
        if self._connect is not None:
            connection = await self._connected()
            await connection.close()
            self.was_reached = True

    async def _connected(self) -> AsyncConnection[Any]:
        assert self._connect is not None
        try:
            return await self._connect()
        except (psycopg.OperationalError, UnicodeError) as error:
            # UnicodeError: a host that cannot be one, such as a placeholder.
            raise _unreachable(error) from error

    def _pool_of(
        self, connection_class: type[AsyncConnection[Any]], dsn: str, options: dict[str, Any]
    ) -> AsyncPool:
        return AsyncConnectionPool(
            dsn,
            connection_class=connection_class,
            kwargs=options,
            min_size=self._settings.pool_min_size,
            max_size=self._settings.pool_max_size,
            name="lonnymq",
            open=False,
        )


def _made_by(factory: Callable[[], Awaitable[AsyncConnection[Any]]]) -> type[AsyncConnection[Any]]:
    """Return the class by which a pool makes its connections with the caller's function."""

    class Made(AsyncConnection[Any]):
        @classmethod
        async def connect(cls, *arguments: Any, **options: Any) -> Any:
            return await factory()

    return Made


def _unreachable(error: Exception) -> ConnectionLost:
    return ConnectionLost(
        f"no connection to the database: nothing was sent ({error})", may_have_happened=False
    )
