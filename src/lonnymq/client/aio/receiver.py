"""Receives messages: a dequeue, the contents that its reply left out, and waiting for the next message."""

import time
from dataclasses import replace
from typing import Any

from lonnymq.calls import acknowledge as acknowledge_calls
from lonnymq.calls import message as calls
from lonnymq.calls.statement import Call
from lonnymq.client.aio.acknowledger import acknowledge
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.aio.sleeper import AsyncSleeper
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.errors import ConnectionLost
from lonnymq.model import Dequeued, DequeueOutcome
from lonnymq.model.acknowledge import GIVE_BACK
from lonnymq.model.lease import Leased, set_content

# Contents that a reply left out are read in groups of about this size.
READ_BYTES = 1024 * 1024


class AsyncReceiver:
    """Dequeues once or waits, and reads large contents; gives back the messages of a cancelled caller."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        # Each waiting call takes one, and returns it, still listening, for the next.
        self._idle_sleepers: list[AsyncSleeper] = []

    async def receive(
        self,
        call: Call[Dequeued[Leased]],
        wait_s: float,
        read_s: float,
        connection: AsyncBorrowedConnection | None,
    ) -> Dequeued[Leased]:
        """Lease, then read the contents that the reply left out; give back those not read within `read_s`."""
        reply = await self.lease(call, wait_s, connection)
        if not reply.unread:
            return reply
        try:
            return await self._read(reply, read_s, connection)
        except ConnectionLost:
            raise
        except BaseException:
            await self._caller.undo(_give_back(reply))
            raise

    async def lease(
        self,
        call: Call[Dequeued[Leased]],
        wait_s: float,
        connection: AsyncBorrowedConnection | None = None,
        call_when_idle: Call[Dequeued[Leased]] | None = None,
    ) -> Dequeued[Leased]:
        """Dequeue once, or until a message comes or the time is over; read no content that was left out.

        Once the queue was empty, `call_when_idle` is used instead of `call`.
        """
        call = replace(call, undo=_give_back)
        if not wait_s:
            return self._observe(time.time_ns(), await self._caller.perform(call, connection))
        # Not after the wait, when every microsecond delays a message.
        idle_call = replace(call_when_idle or call, undo=_give_back)
        deadline = time.monotonic() + wait_s
        sleeper = self._take_idle_sleeper() or AsyncSleeper(self._caller)
        try:
            await self.withdraw_unused_sleepers()
            started_ns = time.time_ns()
            reply = await sleeper.dequeue(call)
            while not reply.leases and time.monotonic() < deadline:
                await sleeper.wait(reply, deadline)
                if reply.outcome is DequeueOutcome.EMPTY:
                    call = idle_call
                started_ns = time.time_ns()
                reply = await sleeper.dequeue(call)
            sleeper.reset_pauses()
        finally:
            sleeper.become_idle()
            self._idle_sleepers.append(sleeper)
            if self._caller.source.is_closed:
                await self.close()
        return self._observe(started_ns, reply)

    async def withdraw_unused_sleepers(self) -> None:
        """Withdraw the registrations of sleepers that no call has used lately: nobody waits with them."""
        for sleeper in list(self._idle_sleepers):
            if sleeper.is_unused():
                try:
                    self._idle_sleepers.remove(sleeper)
                except ValueError:
                    # Another call has just taken it.
                    continue
                try:
                    await sleeper.withdraw()
                finally:
                    self._idle_sleepers.insert(0, sleeper)

    async def close(self) -> None:
        """Close the connections of idle sleepers now, the others when their calls end."""
        while (sleeper := self._take_idle_sleeper()) is not None:
            await sleeper.close()

    def _observe(self, started_ns: int, reply: Dequeued[Leased]) -> Dequeued[Leased]:
        """Tell the instrumentation what was leased, if there is one."""
        if reply.leases and self._caller.instrumentation is not None:
            self._caller.instrumentation.dequeued(reply.leases, started_ns)
        return reply

    def _take_idle_sleeper(self) -> AsyncSleeper | None:
        try:
            return self._idle_sleepers.pop()
        except IndexError:
            return None

    async def _read(
        self, reply: Dequeued[Leased], read_s: float, connection: AsyncBorrowedConnection | None
    ) -> Dequeued[Leased]:
        deadline = time.monotonic() + read_s
        is_read = set[int]()
        for group in _group_by_size([lease for lease in reply.leases if lease.id in reply.unread], reply):
            ids, tokens = [lease.id for lease in group], [lease.token for lease in group]
            found = await self._caller.perform(calls.read(ids, tokens), connection)
            for lease in group:
                if lease.id in found:
                    set_content(lease, found[lease.id])
                    is_read.add(lease.id)
            if time.monotonic() > deadline:
                break
        # A message that was cancelled, or not read in time, still holds its lease and counts towards the cap.
        unread = [lease for lease in reply.leases if lease.id in reply.unread and lease.id not in is_read]
        if unread:
            await acknowledge(self._caller, GIVE_BACK, unread, connection=connection, repeat_busy=False)
        leases = tuple(lease for lease in reply.leases if lease.id in is_read or lease.id not in reply.unread)
        return replace(reply, leases=leases, unread={})


def _give_back(reply: Dequeued[Leased]) -> Call[Any] | None:
    """Return the call that gives back all messages of a reply."""
    ids, tokens = [lease.id for lease in reply.leases], [lease.token for lease in reply.leases]
    return acknowledge_calls.acknowledge(GIVE_BACK, ids, tokens) if ids else None


def _group_by_size(leases: list[Leased], reply: Dequeued[Leased]) -> list[list[Leased]]:
    """Return the leases in groups whose contents have a bounded total size."""
    groups: list[list[Leased]] = []
    left_bytes = 0
    for lease in leases:
        left_bytes -= reply.unread[lease.id]
        if not groups or left_bytes < 0:
            groups.append([])
            left_bytes = READ_BYTES - reply.unread[lease.id]
        groups[-1].append(lease)
    return groups
