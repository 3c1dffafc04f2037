"""Waits until a message has ended, and returns its result."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from lonnymq.calls import result as calls
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.connections.aio.semaphore import AsyncSemaphore
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import Busy, ConnectionLost
from lonnymq.model import MessageReport

# How often to look without a notification: one is missed if its connection was lost.
FIRST_PAUSE_S, MAX_PAUSE_S = 0.02, 1.0
# How many messages to ask for at once, because each may have a result of up to 1 MiB.
LOOK_AT_ONCE = 100


class AsyncWaitingCall:
    """A call that waits for the end of a message."""

    def __init__(self, id_: int) -> None:
        self.id = id_
        # It has not failed to yet.
        self.may_listen = True
        # Set, and released, by the call that listens.
        self.report: MessageReport | None = None
        self.wakeup = AsyncSemaphore(0)


class AsyncResultWaiter:
    """The results of one queue. Of the calls that wait, one listens, and looks for the others too."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self._waiting: list[AsyncWaitingCall] = []
        # Only one call has the right to listen. Unlike a flag, two threads cannot take it at once.
        self._right_to_listen = [True]

    async def wait(self, id_: int, wait_s: float) -> MessageReport:
        """Return what has become of a message, as soon as it has ended or the time is over."""
        deadline = time.monotonic() + wait_s
        [report] = await self._look([id_])
        if not report.status.is_live or wait_s <= 0:
            return report
        waiting = AsyncWaitingCall(id_)
        waiting.may_listen = self._caller.settings.listen
        self._waiting.append(waiting)
        try:
            return await self._wait(waiting, deadline)
        finally:
            self._waiting.remove(waiting)

    async def _wait(self, waiting: AsyncWaitingCall, deadline: float) -> MessageReport:
        pauses = Backoff(first_s=FIRST_PAUSE_S, max_s=MAX_PAUSE_S)
        while True:
            if waiting.may_listen and self._take_right_to_listen():
                try:
                    return await self._listen(waiting, deadline)
                except (ConnectionLost, Busy, psycopg.OperationalError):
                    waiting.may_listen = False
                finally:
                    self._right_to_listen.append(True)
                    self._let_another_listen(waiting)
            # What ends from now on is noticed by the call that listens.
            [report] = await self._look([waiting.id])
            left_s = deadline - time.monotonic()
            if not report.status.is_live or left_s <= 0:
                return report
            pause_s = MAX_PAUSE_S if waiting.may_listen else pauses.next_s()
            await waiting.wakeup.acquire(min(left_s, pause_s))
            if waiting.report is not None:
                return waiting.report

    def _take_right_to_listen(self) -> bool:
        try:
            return self._right_to_listen.pop()
        except IndexError:
            return False

    def _let_another_listen(self, than: AsyncWaitingCall) -> None:
        for other in list(self._waiting):
            if other is not than and other.may_listen and other.report is None:
                other.wakeup.release()
                return

    async def _listen(self, waiting: AsyncWaitingCall, deadline: float) -> MessageReport:
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(self._caller.source.dedicated_connection())
            event = await self._caller.execute(calls.event(), connection)
            await connection.execute(sql.SQL("listen {}").format(sql.Identifier(event)))
            while True:
                # Whatever ends from now on is notified.
                await self._look_for_others(waiting, connection)
                [report] = await self._look([waiting.id], connection)
                left_s = deadline - time.monotonic()
                if not report.status.is_live or left_s <= 0:
                    return report
                async for _ in connection.notifies(timeout=min(left_s, MAX_PAUSE_S), stop_after=1):
                    pass
                # One look is enough for all that have arrived.
                async for _ in connection.notifies(timeout=0):
                    pass

    async def _look_for_others(self, than: AsyncWaitingCall, connection: AsyncConnection[Any]) -> None:
        others = [one for one in list(self._waiting) if one is not than and one.report is None]
        for start in range(0, len(others), LOOK_AT_ONCE):
            some = others[start : start + LOOK_AT_ONCE]
            reports = await self._look([one.id for one in some], connection)
            for other, report in zip(some, reports, strict=True):
                if not report.status.is_live:
                    other.report = report
                    other.wakeup.release()

    async def _look(
        self, ids: Sequence[int], connection: AsyncConnection[Any] | None = None
    ) -> list[MessageReport]:
        call = calls.status_of(ids)
        if connection is None:
            return await self._caller.perform(call)
        return await self._caller.execute(call, connection)
