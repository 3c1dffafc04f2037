"""The source of connections: our pool, over a DSN or the caller's function, or the caller's own pool."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection

from lonnymq.connections import session_settings
from lonnymq.connections.aio.pool import AsyncPool
from lonnymq.connections.aio.resolver import resolve
from lonnymq.connections.backoff import Backoff
from lonnymq.connections.callers_pool import AsyncCallersPool, is_async_callers_pool, is_pool_timeout
from lonnymq.connections.failure import is_idle, is_stale, unreachable
from lonnymq.connections.outage import Outage
from lonnymq.connections.settings import ClientSettings, connection_options
from lonnymq.connections.target import describe_target, dsn_or_environment
from lonnymq.errors import ConnectionLost, LoginRefused, LonnyError, invalid_kind

AsyncTarget = str | AsyncCallersPool | Callable[[], Awaitable[AsyncConnection[Any]]]

# The longest pause between two attempts to connect: a server that comes back is noticed within this time.
MAX_PAUSE_S = 1.0


class AsyncSource:
    """Provides connections in autocommit mode, none of which is known to be dead."""

    def __init__(self, target: AsyncTarget, settings: ClientSettings) -> None:
        self.target = target = dsn_or_environment(target)
        # The number of connections made so far: a new one may lead to another server.
        self.connect_count = 0
        self._settings = settings
        self.is_closed = False
        self._outage = Outage(describe_target(target))
        self._pool: AsyncPool | AsyncCallersPool
        if is_async_callers_pool(target):
            self._pool = target
            return
        self._options: dict[str, Any] = {}
        if isinstance(target, str):
            self._options = connection_options(target, settings)
        elif not callable(target):
            raise invalid_kind(
                "dsn", target, "a connection string, a psycopg_pool pool, or a function that connects"
            )
        self._pool = AsyncPool(self._connect, settings)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {describe_target(self.target)}>"

    def require_open(self) -> None:
        """Raise if the client is closed."""
        if self.is_closed:
            raise LonnyError("this queue is closed")

    @asynccontextmanager
    async def connection(self, for_s: float | None = None) -> AsyncIterator[AsyncConnection[Any]]:
        """Yield a connection of the pool; try to get one for `for_s` seconds, by default `retry_for_s`."""
        self.require_open()
        deadline = time.monotonic() + (self._settings.retry_for_s if for_s is None else for_s)
        if isinstance(self._pool, AsyncPool):
            pooled = await self._pool.take(deadline)
            try:
                yield pooled.connection
            finally:
                await self._pool.put(pooled)
            return
        connection = await self._take_from(self._pool, deadline)
        was_autocommit = connection.autocommit
        try:
            if not was_autocommit:
                await connection.set_autocommit(True)
            yield connection
        finally:
            if not is_idle(connection):
                await connection.close()
            elif not was_autocommit:
                await connection.set_autocommit(False)
            await self._pool.putconn(connection)

    @asynccontextmanager
    async def dedicated_connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Yield a connection that may keep state, because it is closed afterwards; try to connect once."""
        self.require_open()
        if isinstance(self._pool, AsyncPool):
            connection = await self._connect(time.monotonic())
            try:
                yield connection
            finally:
                await connection.close()
        else:
            connection = await self._take_from(self._pool, time.monotonic() + self._settings.retry_for_s)
            try:
                await connection.set_autocommit(True)
                yield connection
            finally:
                await connection.close()
                await self._pool.putconn(connection)

    @asynccontextmanager
    async def default_connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Yield a connection with the default settings of server, database and role, like a caller's own."""
        self.require_open()
        if not isinstance(self.target, str):
            async with self.connection() as connection:
                yield connection
            return
        options = {name: value for name, value in self._options.items() if name != "options"}
        try:
            connection = await AsyncConnection.connect(self.target, **options)
        except (psycopg.OperationalError, UnicodeError) as error:
            raise unreachable(error) from error
        try:
            yield connection
        finally:
            await connection.close()

    async def renew(self) -> None:
        """Use no idle connection again: one did not respond, and the others may not either."""
        if isinstance(self._pool, AsyncPool):
            await self._pool.renew()

    async def close(self) -> None:
        """Close our own connections."""
        self.is_closed = True
        if isinstance(self._pool, AsyncPool):
            await self._pool.close()

    async def _connect(self, deadline: float) -> AsyncConnection[Any]:
        """Connect; while the server is unreachable, retry until the monotonic clock reaches `deadline`."""
        backoff = Backoff(max_s=MAX_PAUSE_S)
        while True:
            try:
                connection = await self._connect_once()
            except LoginRefused:
                raise
            except ConnectionLost as error:
                pause_s = backoff.next_s()
                if time.monotonic() + pause_s >= deadline:
                    raise
                self._outage.record_failure(error)
                await asyncio.sleep(pause_s)
            else:
                self._outage.record_success()
                self.connect_count += 1
                return connection

    async def _connect_once(self) -> AsyncConnection[Any]:
        try:
            if not isinstance(self.target, str):
                assert callable(self.target)
                connection: AsyncConnection[Any] = await self.target()
                try:
                    await connection.set_autocommit(True)
                except BaseException:
                    await connection.close()
                    raise
            else:
                connection = await self._connect_with_settings(self.target)
        except (psycopg.OperationalError, UnicodeError) as error:
            # UnicodeError: the host is not a valid name, such as a placeholder.
            raise unreachable(error) from error
        return connection

    async def _connect_with_settings(self, dsn: str) -> AsyncConnection[Any]:
        address = await resolve(dsn)
        # Another connection that is being made may change `self._options`.
        options = self._options
        try:
            connection: AsyncConnection[Any] = await AsyncConnection.connect(dsn, **address, **options)
        except psycopg.OperationalError as error:
            if "options" not in options or not session_settings.is_refusal(error):
                raise
            # It is a pooler, and will refuse them next time too. The caller's own options stay in the DSN.
            options = {name: value for name, value in options.items() if name != "options"}
            self._options = options
            connection = await AsyncConnection.connect(dsn, **address, **options)
        correction = session_settings.correction_statement(
            connection.info.server_version,
            self._settings.session_settings,
            has_options="options" in options,
        )
        if correction is not None and self._settings.keeps_session:
            try:
                await connection.execute(correction, prepare=False)
            except BaseException:
                await connection.close()
                raise
        return connection

    async def _take_from(self, pool: AsyncCallersPool, deadline: float) -> AsyncConnection[Any]:
        while True:
            try:
                connection = await pool.getconn(timeout=max(0.001, deadline - time.monotonic()))
            except psycopg.OperationalError as error:
                if not is_pool_timeout(error):
                    raise
                raise unreachable(error) from error
            if not is_stale(connection):
                return connection
            await connection.close()
            await pool.putconn(connection)
