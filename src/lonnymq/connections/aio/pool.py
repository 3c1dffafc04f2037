"""The client's own connections. A call that needs a new connection makes it, and gets its errors."""

import random
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from lonnymq.connections.aio.semaphore import AsyncSemaphore
from lonnymq.connections.failure import is_idle, is_stale
from lonnymq.connections.settings import ClientSettings
from lonnymq.errors import ConnectionLost

# A connection is replaced after this long, because its session's memory grows.
MAX_LIFETIME_S = 3600.0
# A connection above `pool_min_size` that was idle for this long is closed.
MAX_IDLE_S = 600.0


@dataclass(eq=False)
class AsyncPooledConnection:
    """A connection of the pool."""

    connection: AsyncConnection[Any]
    made_at: float
    ends_at: float
    idle_since: float = 0.0


class AsyncPool:
    """Keeps idle connections for later calls; the one returned last is used first."""

    def __init__(
        self, connect: Callable[[float], Awaitable[AsyncConnection[Any]]], settings: ClientSettings
    ) -> None:
        # Its argument is the deadline for connecting, on the monotonic clock.
        self._connect = connect
        self._settings = settings
        self._free_places = AsyncSemaphore(settings.pool_max_size)
        self._idle: deque[AsyncPooledConnection] = deque()
        self._trusted_since = 0.0
        self._is_closed = False
        # If nobody closes the client, its connections are closed silently when it is garbage-collected or
        # when the program ends. Not by __del__, which in a reference cycle may run after theirs.
        weakref.finalize(self, _close_silently, self._idle)

    async def take(self, deadline: float) -> AsyncPooledConnection:
        """Return an idle connection that has not visibly failed, or a new one."""
        began_at = time.monotonic()
        if not await self._free_places.acquire(deadline - began_at):
            raise ConnectionLost(
                f"all {self._settings.pool_max_size} connections of this client were in use for"
                f" {time.monotonic() - began_at:.1f} s: nothing was sent; allow more with"
                " ClientSettings(pool_max_size=...)",
                may_have_happened=False,
            )
        try:
            while (pooled := self._pop()) is not None:
                if self._is_trusted(pooled) and not is_stale(pooled.connection):
                    return pooled
                await pooled.connection.close()
            connection = await self._connect(deadline)
        except BaseException:
            self._free_places.release()
            raise
        now = time.monotonic()
        return AsyncPooledConnection(connection, now, now + MAX_LIFETIME_S * random.uniform(0.95, 1.0))

    async def put(self, pooled: AsyncPooledConnection) -> None:
        """Return a connection to the pool; close it if a call or transaction is still open on it."""
        try:
            if self._is_closed or not is_idle(pooled.connection) or not self._is_trusted(pooled):
                await pooled.connection.close()
            else:
                pooled.idle_since = time.monotonic()
                self._idle.append(pooled)
                await self._close_surplus()
        finally:
            self._free_places.release()
        if self._is_closed:
            await self.close()

    async def renew(self) -> None:
        """Use none of the current connections again."""
        self._trusted_since = time.monotonic()
        await self._close_idle()

    async def close(self) -> None:
        """Close idle connections now, the others when they are returned."""
        self._is_closed = True
        await self._close_idle()

    def _pop(self) -> AsyncPooledConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _is_trusted(self, pooled: AsyncPooledConnection) -> bool:
        return pooled.made_at >= self._trusted_since and time.monotonic() < pooled.ends_at

    async def _close_surplus(self) -> None:
        if len(self._idle) <= self._settings.pool_min_size:
            return
        try:
            oldest = self._idle.popleft()
        except IndexError:
            return
        if oldest.idle_since > time.monotonic() - MAX_IDLE_S:
            self._idle.appendleft(oldest)
        else:
            await oldest.connection.close()

    async def _close_idle(self) -> None:
        while (pooled := self._pop()) is not None:
            await pooled.connection.close()


def _close_silently(idle: deque[AsyncPooledConnection]) -> None:
    for pooled in idle:
        pooled.connection.pgconn.finish()
