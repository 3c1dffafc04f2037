"""Where connections come from: our pool over a DSN or the caller's function, or the caller's own pool."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection

from lonnymq.connections import session
from lonnymq.connections.aio.pool import AsyncPool
from lonnymq.connections.aio.resolver import resolve
from lonnymq.connections.backoff import Backoff
from lonnymq.connections.callers_pool import AsyncCallersPool, is_async_callers_pool, is_pool_timeout
from lonnymq.connections.failure import is_idle, is_stale, unreachable
from lonnymq.connections.outage import Outage
from lonnymq.connections.settings import ClientSettings, connection_options
from lonnymq.connections.target import described, dsn_or_environment
from lonnymq.errors import ConnectionLost, LoginRefused, LonnyError, invalid_kind

AsyncTarget = str | AsyncCallersPool | Callable[[], Awaitable[AsyncConnection[Any]]]

# The longest pause between two attempts to connect: a server that comes back is noticed within this time.
MOST_PAUSE_S = 1.0


class AsyncSource:
    """Hands out connections in autocommit mode, none of them known to be dead."""

    def __init__(self, target: AsyncTarget, settings: ClientSettings) -> None:
        self.target = target = dsn_or_environment(target)
        # How many connections were made here: another one may lead to another server.
        self.connected = 0
        self._settings = settings
        self.is_closed = False
        self._outage = Outage(described(target))
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
        return f"<{type(self).__name__} {described(self.target)}>"

    def require_open(self) -> None:
        """Refuse what is asked of a client that is closed."""
        if self.is_closed:
            raise LonnyError("this queue is closed")

    @asynccontextmanager
    async def connection(self, for_s: float | None = None) -> AsyncIterator[AsyncConnection[Any]]:
        """Take a connection from the pool for a while; try for `for_s` seconds, by default `retry_for_s`."""
        self.require_open()
        until = time.monotonic() + (self._settings.retry_for_s if for_s is None else for_s)
        if isinstance(self._pool, AsyncPool):
            member = await self._pool.take(until)
            try:
                yield member.connection
            finally:
                await self._pool.put(member)
            return
        connection = await self._take_from(self._pool, until)
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
    async def dedicated(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Open a connection that may keep state, because it is closed afterwards; one attempt to connect."""
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
    async def plain(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Open a connection with the defaults of server, database and role, as a caller's own has them."""
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
        """Stop using the idle connections: one was silent, and the others probably go the same way."""
        if isinstance(self._pool, AsyncPool):
            await self._pool.renew()

    async def close(self) -> None:
        """Close what is ours."""
        self.is_closed = True
        if isinstance(self._pool, AsyncPool):
            await self._pool.close()

    async def _connect(self, until: float) -> AsyncConnection[Any]:
        """Connect; while the server is away, try again until the monotonic clock reaches `until`."""
        backoff = Backoff(most_s=MOST_PAUSE_S)
        while True:
            try:
                connection = await self._connect_once()
            except LoginRefused:
                raise
            except ConnectionLost as error:
                pause_s = backoff.next_s()
                if time.monotonic() + pause_s >= until:
                    raise
                self._outage.goes_on(error)
                await asyncio.sleep(pause_s)
            else:
                self._outage.ends()
                self.connected += 1
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
            # UnicodeError: a host that cannot be one, such as a placeholder.
            raise unreachable(error) from error
        return connection

    async def _connect_with_settings(self, dsn: str) -> AsyncConnection[Any]:
        where = await resolve(dsn)
        try:
            connection: AsyncConnection[Any] = await AsyncConnection.connect(dsn, **where, **self._options)
        except psycopg.OperationalError as error:
            if "options" not in self._options or not session.is_refusal(error):
                raise
            # A pooler, which is not likely to change its mind. The caller's own options stay in the DSN.
            self._options = {name: value for name, value in self._options.items() if name != "options"}
            connection = await AsyncConnection.connect(dsn, **where, **self._options)
        has_options = "options" in self._options
        correction = session.correction(connection.info.server_version, has_options=has_options)
        if correction is not None and self._settings.keeps_session:
            try:
                await connection.execute(correction, prepare=False)
            except BaseException:
                await connection.close()
                raise
        return connection

    async def _take_from(self, pool: AsyncCallersPool, until: float) -> AsyncConnection[Any]:
        while True:
            try:
                connection = await pool.getconn(timeout=max(0.001, until - time.monotonic()))
            except psycopg.OperationalError as error:
                if not is_pool_timeout(error):
                    raise
                raise unreachable(error) from error
            if not is_stale(connection):
                return connection
            await connection.close()
            await pool.putconn(connection)
