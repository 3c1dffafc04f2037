"""Waits until a message has ended, and returns its result."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from lonnymq.calls import result as calls
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import Busy, ConnectionLost
from lonnymq.model import MessageReport

# How often to look without a notification: one is missed if its connection was lost.
FIRST_PAUSE_S, MAX_PAUSE_S = 0.02, 1.0


class AsyncResultWaiter:
    """The results of one queue. While several calls wait, one listens, and the others poll."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        # Only one call has the right to listen. Unlike a flag, two threads cannot take it at once.
        self._right_to_listen = [True]

    async def wait(self, id_: int, wait_s: float) -> MessageReport:
        """Return what has become of a message, as soon as it has ended or the time is over."""
        deadline = time.monotonic() + wait_s
        report = await self._look(id_)
        if not report.status.is_live or wait_s <= 0:
            return report
        if self._caller.settings.listen and self._take_right_to_listen():
            try:
                return await self._listen(id_, deadline)
            except (ConnectionLost, Busy, psycopg.OperationalError):
                pass
            finally:
                self._right_to_listen.append(True)
        return await self._poll(id_, deadline)

    def _take_right_to_listen(self) -> bool:
        try:
            return self._right_to_listen.pop()
        except IndexError:
            return False

    async def _listen(self, id_: int, deadline: float) -> MessageReport:
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(self._caller.source.dedicated_connection())
            event = await self._caller.execute(calls.event(), connection)
            await connection.execute(sql.SQL("listen {}").format(sql.Identifier(event)))
            while True:
                # Whatever ends from now on is notified.
                report = await self._look(id_, connection)
                left_s = deadline - time.monotonic()
                if not report.status.is_live or left_s <= 0:
                    return report
                async for _ in connection.notifies(timeout=min(left_s, MAX_PAUSE_S), stop_after=1):
                    pass

    async def _poll(self, id_: int, deadline: float) -> MessageReport:
        pauses = Backoff(first_s=FIRST_PAUSE_S, max_s=MAX_PAUSE_S)
        while True:
            report = await self._look(id_)
            left_s = deadline - time.monotonic()
            if not report.status.is_live or left_s <= 0:
                return report
            await asyncio.sleep(min(left_s, pauses.next_s()))

    async def _look(self, id_: int, connection: AsyncConnection[Any] | None = None) -> MessageReport:
        call = calls.status_of([id_])
        if connection is None:
            return (await self._caller.perform(call))[0]
        return (await self._caller.execute(call, connection))[0]
