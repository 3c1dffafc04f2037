"""Waits for messages without polling: LISTEN, and a registration that makes producers NOTIFY."""

import asyncio
import time
import uuid
import weakref
from contextlib import AsyncExitStack
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from lonnymq.calls import queue as queue_calls
from lonnymq.calls import sleeper as sleeper_calls
from lonnymq.calls.statement import Call
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.wakeup_backoff import WakeupBackoff
from lonnymq.connections.backoff import Backoff
from lonnymq.connections.failure import is_idle
from lonnymq.errors import ConnectionLost, LonnyError
from lonnymq.model import Dequeued, DequeueOutcome
from lonnymq.model.lease import Leased

# How long a registration is valid; it is renewed at half time. After a worker was killed, producers keep
# notifying until its registration expires.
REGISTERED_FOR_MS = 30_000
# The first dequeue this long after the last wait withdraws the registration: a caller that gets messages
# without waiting needs no notifications, and each notification costs its producer a database-wide lock.
AWAKE_S = 0.25
# The pauses between two dequeues: the first one, and the longest while a registration settles and while
# the outcome is "busy".
FIRST_PAUSE_S, MAX_SETTLING_PAUSE_S, MAX_BUSY_PAUSE_S = 0.001, 0.25, 0.05


class AsyncSleeper:
    """A dequeue that waits; once it has had to wait, it has a connection of its own.

    Producers notify only if they see a registration, and a transaction that began before the registration
    was committed may not see it. So after registering, the sleeper keeps polling until all those transactions
    have ended, and only then relies on notifications.
    """

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self._name = f"sleeper-{uuid.uuid4().hex[:16]}"
        self._stack = AsyncExitStack()
        self._connection: AsyncConnection[Any] | None = None
        # The same connection between two calls; it is closed silently if nobody closes the client.
        self._idle: list[AsyncConnection[Any]] = []
        weakref.finalize(self, _close_silently, self._idle)
        self._registered_until = 0.0
        # Transactions before this one may not have seen the registration; None: all of them have ended.
        self._unaware_before: int | None = None
        self._settling = Backoff(first_s=FIRST_PAUSE_S, max_s=MAX_SETTLING_PAUSE_S)
        self._busy = Backoff(first_s=FIRST_PAUSE_S, max_s=MAX_BUSY_PAUSE_S)
        self._wakeups = WakeupBackoff()
        self._dequeued_at = 0.0
        self._waited_at = 0.0

    async def dequeue(self, call: Call[Dequeued[Leased]]) -> Dequeued[Leased]:
        """Dequeue, on the sleeper's own connection if it has one."""
        self._caller.source.require_open()
        self._idle.clear()
        self._dequeued_at = time.monotonic()
        if self._connection is not None and not is_idle(self._connection):
            # The last call was cancelled before it ended.
            await self.close()
        if self._connection is not None:
            try:
                if self.is_unused():
                    await self._withdraw(self._connection)
                return await self._caller.execute(call, self._connection)
            except ConnectionLost:
                await self.close()
        return await self._caller.perform(call)

    async def wait(self, reply: Dequeued[Any], deadline: float) -> None:
        """Wait until another dequeue makes sense, at most until `deadline` on the monotonic clock."""
        self._wakeups.fail()
        if reply.outcome is DequeueOutcome.BUSY:
            await asyncio.sleep(max(0.0, min(self._busy.next_s(), deadline - time.monotonic())))
            return
        # The server counts from when it received the call, not from when its reply was read.
        due_at = self._dequeued_at + max(reply.wait_ms, 1) / 1000
        longest_s = max(0.0, min(deadline, due_at) - time.monotonic())
        if not self._caller.settings.listen:
            await asyncio.sleep(min(longest_s, self._caller.settings.poll_s))
            return
        try:
            await self._wait_for_wakeup(longest_s)
            self._waited_at = time.monotonic()
        except (ConnectionLost, psycopg.OperationalError):
            # Wake-ups cannot arrive. Polling continues on other connections.
            await self.close()
            await asyncio.sleep(min(longest_s, self._caller.settings.poll_s))

    def reset_pauses(self) -> None:
        """Start the next wait with short pauses again, because a message came."""
        self._settling.reset()
        self._busy.reset()
        self._wakeups.succeed()

    def become_idle(self) -> None:
        """Have the connection closed unless another call follows."""
        if self._connection is not None:
            self._idle.append(self._connection)

    def is_unused(self) -> bool:
        """Return whether producers notify although nobody has waited for a while."""
        return self._is_registered() and time.monotonic() - self._waited_at > AWAKE_S

    async def withdraw(self) -> None:
        """Withdraw the registration between two calls, and keep the connection."""
        self._idle.clear()
        try:
            if self._connection is not None and is_idle(self._connection):
                await self._withdraw(self._connection)
                self.become_idle()
            else:
                await self.close()
        except (LonnyError, psycopg.Error):
            # The registration expires by itself.
            await self.close()

    async def close(self) -> None:
        """Withdraw the registration and close the connection; ignore failures."""
        connection, self._connection = self._connection, None
        self._idle.clear()
        try:
            if connection is not None and not connection.closed and self._is_registered():
                await self._withdraw(connection)
        except (LonnyError, psycopg.Error):
            # The registration expires by itself.
            pass
        finally:
            self._registered_until = 0.0
            await self._stack.aclose()

    async def _wait_for_wakeup(self, longest_s: float) -> None:
        connection = await self._ensure_listening()
        if not self._is_registered():
            await self._register(connection)
            self._unaware_before = (await self._caller.execute(queue_calls.horizon(), connection)).newest
            return
        if self._unaware_before is not None:
            oldest = (await self._caller.execute(queue_calls.horizon(), connection)).oldest
            if oldest >= self._unaware_before:
                self._unaware_before = None
                return
            # An older transaction is still open: it may create a message without notifying.
            longest_s = min(longest_s, self._settling.next_s())
        elif self._left_s() < REGISTERED_FOR_MS / 2000:
            until = self._registered_until
            await self._register(connection)
            if time.monotonic() >= until:
                # The old registration expired before the new one was committed: start again.
                self._registered_until = 0.0
                return
        await self._wait_for_notification(connection, min(longest_s, self._left_s()))

    async def _wait_for_notification(self, connection: AsyncConnection[Any], longest_s: float) -> None:
        if await _is_notified(connection, 0.0):
            # During the last call. This sleeper was awake then, so its next dequeue competes with nobody.
            return
        pause_s = self._wakeups.wake(await _is_notified(connection, longest_s))
        if pause_s:
            # The next dequeue also covers what is notified meanwhile.
            async for _ in connection.notifies(timeout=pause_s):
                pass

    async def _ensure_listening(self) -> AsyncConnection[Any]:
        if self._connection is None:
            self._registered_until = 0.0
            connection = await self._stack.enter_async_context(self._caller.source.dedicated_connection())
            try:
                event = await self._caller.execute(queue_calls.event(), connection)
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(event)))
            except BaseException:
                await self._stack.aclose()
                raise
            self._connection = connection
        return self._connection

    async def _register(self, connection: AsyncConnection[Any]) -> None:
        began_at = time.monotonic()
        await self._caller.execute(sleeper_calls.register(self._name, REGISTERED_FOR_MS), connection)
        self._registered_until = began_at + REGISTERED_FOR_MS / 1000

    async def _withdraw(self, connection: AsyncConnection[Any]) -> None:
        self._registered_until = 0.0
        self._unaware_before = None
        await self._caller.execute(sleeper_calls.clear(self._name), connection)

    def _is_registered(self) -> bool:
        return self._left_s() > 0

    def _left_s(self) -> float:
        return self._registered_until - time.monotonic()


async def _is_notified(connection: AsyncConnection[Any], within_s: float) -> bool:
    """Return whether a notification arrives within this time, or has arrived before."""
    is_notified = False
    async for _ in connection.notifies(timeout=max(0.0, within_s), stop_after=1):
        is_notified = True
    return is_notified


def _close_silently(connections: list[AsyncConnection[Any]]) -> None:
    for connection in connections:
        connection.pgconn.finish()
