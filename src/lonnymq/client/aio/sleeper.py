"""Waiting without asking all the time: LISTEN, and a registration that makes producers NOTIFY."""

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

# Renewed at half of it. For a worker that was killed, producers go on notifying until it runs out.
REGISTERED_FOR_MS = 30_000
# The pauses between two questions: the first one, and the longest while a registration settles and while
# the answer is "busy".
FIRST_S, SETTLE_S, BUSY_S = 0.001, 0.25, 0.05


class AsyncSleeper:
    """One waiting dequeue, with a connection of its own once it has had to wait.

    Producers notify only if they see a registration, and one that began before it was committed may not.
    So after registering this keeps asking until all those have ended, and only then trusts the notification.
    """

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self._name = f"sleeper-{uuid.uuid4().hex[:16]}"
        self._stack = AsyncExitStack()
        self._connection: AsyncConnection[Any] | None = None
        # The same between two calls, to be closed without a word if nobody closes the client.
        self._resting: list[AsyncConnection[Any]] = []
        weakref.finalize(self, _finish, self._resting)
        self._registered_until = 0.0
        # Who began before this transaction may not have seen the registration; None: all those have ended.
        self._newest: int | None = None
        self._settling = Backoff(first_s=FIRST_S, most_s=SETTLE_S)
        self._busy = Backoff(first_s=FIRST_S, most_s=BUSY_S)
        self._wakeups = WakeupBackoff()
        self._asked_at = 0.0

    async def ask(self, call: Call[Dequeued[Leased]]) -> Dequeued[Leased]:
        """Dequeue, on the sleeper's own connection if it has one."""
        self._caller.source.require_open()
        self._resting.clear()
        self._asked_at = time.monotonic()
        if self._connection is not None and not is_idle(self._connection):
            # The last call was cancelled half-way.
            await self.close()
        if self._connection is not None:
            try:
                return await self._caller.execute(call, self._connection)
            except ConnectionLost:
                await self.close()
        return await self._caller.perform(call)

    async def nap(self, reply: Dequeued[Any], deadline: float) -> None:
        """Return when asking again makes sense, at `deadline` (of the monotonic clock) at the latest."""
        self._wakeups.fail()
        if reply.outcome is DequeueOutcome.BUSY:
            await asyncio.sleep(max(0.0, min(self._busy.next_s(), deadline - time.monotonic())))
            return
        # The server has counted from when it was asked, not from when its reply was read.
        due_at = self._asked_at + max(reply.wait_ms, 1) / 1000
        longest_s = max(0.0, min(deadline, due_at) - time.monotonic())
        if not self._caller.settings.listen:
            await asyncio.sleep(min(longest_s, self._caller.settings.poll_s))
            return
        try:
            await self._listen(longest_s)
        except (ConnectionLost, psycopg.OperationalError):
            # The wake-up is cut off. Asking goes on over other connections, at an interval.
            await self.close()
            await asyncio.sleep(min(longest_s, self._caller.settings.poll_s))

    def content(self) -> None:
        """A message came: the next wait starts with short pauses again."""
        self._settling.reset()
        self._busy.reset()
        self._wakeups.succeed()

    def rest(self) -> None:
        """The call has ended; whether there will be another is not known."""
        if self._connection is not None:
            self._resting.append(self._connection)

    async def close(self) -> None:
        """Withdraw the registration and close the connection, as far as that still works."""
        connection, self._connection = self._connection, None
        self._resting.clear()
        try:
            if connection is not None and not connection.closed and self._is_registered():
                await self._caller.execute(sleeper_calls.clear(self._name), connection)
        except (LonnyError, psycopg.Error):
            # It runs out by itself.
            pass
        finally:
            self._registered_until = 0.0
            await self._stack.aclose()

    async def _listen(self, longest_s: float) -> None:
        connection = await self._listening()
        if not self._is_registered():
            await self._register(connection)
            self._newest = (await self._caller.execute(queue_calls.horizon(), connection)).newest
            return
        if self._newest is not None:
            oldest = (await self._caller.execute(queue_calls.horizon(), connection)).oldest
            if oldest >= self._newest:
                self._newest = None
                return
            # An older transaction is open somewhere: it may create a message and not notify.
            longest_s = min(longest_s, self._settling.next_s())
        elif self._left_s() < REGISTERED_FOR_MS / 2000:
            until = self._registered_until
            await self._register(connection)
            if time.monotonic() >= until:
                # The old registration ran out before the new one was committed: start again.
                self._registered_until = 0.0
                return
        await self._notified(connection, min(longest_s, self._left_s()))

    async def _notified(self, connection: AsyncConnection[Any], longest_s: float) -> None:
        was_notified = False
        async for _ in connection.notifies(timeout=max(0.0, longest_s), stop_after=1):
            was_notified = True
        pause_s = self._wakeups.wake(was_notified)
        if pause_s:
            # The next question answers what is notified meanwhile, too.
            async for _ in connection.notifies(timeout=pause_s):
                pass

    async def _listening(self) -> AsyncConnection[Any]:
        if self._connection is None:
            self._registered_until = 0.0
            connection = await self._stack.enter_async_context(self._caller.source.dedicated())
            try:
                event = await self._caller.execute(queue_calls.event(), connection)
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(event)))
            except BaseException:
                await self._stack.aclose()
                raise
            self._connection = connection
        return self._connection

    async def _register(self, connection: AsyncConnection[Any]) -> None:
        began = time.monotonic()
        await self._caller.execute(sleeper_calls.register(self._name, REGISTERED_FOR_MS), connection)
        self._registered_until = began + REGISTERED_FOR_MS / 1000

    def _is_registered(self) -> bool:
        return self._left_s() > 0

    def _left_s(self) -> float:
        return self._registered_until - time.monotonic()


def _finish(connections: list[AsyncConnection[Any]]) -> None:
    for connection in connections:
        connection.pgconn.finish()
