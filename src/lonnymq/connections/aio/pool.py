"""A client's own connections. The call that needs a connection makes it, and gets the error if it fails."""

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
class AsyncMember:
    """One connection of a pool."""

    connection: AsyncConnection[Any]
    made_at: float
    ends_at: float
    idle_since: float = 0.0


class AsyncPool:
    """Keeps idle connections for the next calls; the one returned last is used first."""

    def __init__(
        self, connect: Callable[[float], Awaitable[AsyncConnection[Any]]], settings: ClientSettings
    ) -> None:
        # Takes until when, by the monotonic clock, to go on trying.
        self._connect = connect
        self._settings = settings
        self._places = AsyncSemaphore(settings.pool_max_size)
        self._idle: deque[AsyncMember] = deque()
        self._trusted_since = 0.0
        self._is_closed = False
        # If nobody closes the client, its connections are closed silently when it is collected, or when the
        # program ends. Not by __del__: in a cycle of references it may run after that of the connections.
        weakref.finalize(self, _finish, self._idle)

    async def take(self, until: float) -> AsyncMember:
        """Return a connection that works as far as can be seen, one that was idle or a new one."""
        began_at = time.monotonic()
        if not await self._places.acquire(until - began_at):
            raise ConnectionLost(
                f"all {self._settings.pool_max_size} connections of this client were in use for"
                f" {time.monotonic() - began_at:.1f} s: nothing was sent; allow more with"
                " ClientSettings(pool_max_size=...)",
                may_have_happened=False,
            )
        try:
            while (member := self._pop()) is not None:
                if self._is_trusted(member) and not is_stale(member.connection):
                    return member
                await member.connection.close()
            connection = await self._connect(until)
        except BaseException:
            self._places.release()
            raise
        now = time.monotonic()
        return AsyncMember(connection, now, now + MAX_LIFETIME_S * random.uniform(0.95, 1.0))

    async def put(self, member: AsyncMember) -> None:
        """Take a connection back; close it if somebody's call or transaction is still open on it."""
        try:
            if self._is_closed or not is_idle(member.connection) or not self._is_trusted(member):
                await member.connection.close()
            else:
                member.idle_since = time.monotonic()
                self._idle.append(member)
                await self._close_spare()
        finally:
            self._places.release()
        if self._is_closed:
            await self.close()

    async def renew(self) -> None:
        """Use none of the present connections again."""
        self._trusted_since = time.monotonic()
        await self._close_idle()

    async def close(self) -> None:
        """Close idle connections now, the others when they come back."""
        self._is_closed = True
        await self._close_idle()

    def _pop(self) -> AsyncMember | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _is_trusted(self, member: AsyncMember) -> bool:
        return member.made_at >= self._trusted_since and time.monotonic() < member.ends_at

    async def _close_spare(self) -> None:
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
        while (member := self._pop()) is not None:
            await member.connection.close()


def _finish(idle: deque[AsyncMember]) -> None:
    for member in idle:
        member.connection.pgconn.finish()
