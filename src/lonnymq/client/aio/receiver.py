"""How messages come out: one dequeue, the contents it left out, and waiting for the next."""

import time
from dataclasses import replace

import psycopg

from lonnymq.calls import message as calls
from lonnymq.calls.statement import Call
from lonnymq.client.aio.acknowledger import acknowledge
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.aio.cancellation import kept
from lonnymq.client.aio.lent import AsyncBorrowed, AsyncLentConnection
from lonnymq.client.aio.sleeper import AsyncSleeper
from lonnymq.errors import ConnectionLost, LonnyError
from lonnymq.model import Dequeued
from lonnymq.model.acknowledge import GIVE_BACK
from lonnymq.model.lease import Leased, fill

# Contents that a reply left out are read this many bytes at a time.
READ_BYTES = 1024 * 1024


class AsyncReceiver:
    """Leases are never lost to a cancelled caller: what came too late is given back."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        # Each waiting call takes one, and leaves it, still listening, for the next.
        self._sleepers: list[AsyncSleeper] = []

    async def receive(
        self,
        call: Call[Dequeued[Leased]],
        wait_s: float,
        read_s: float,
        connection: AsyncLentConnection | None,
    ) -> Dequeued[Leased]:
        """Lease, then read the contents that the reply left out; those not read within `read_s` go back."""
        reply = await self.lease(call, wait_s, connection)
        if not reply.unread:
            return reply
        try:
            return await self._read(reply, read_s, connection)
        except ConnectionLost:
            raise
        except BaseException:
            await self._give_back(reply)
            raise

    async def lease(
        self, call: Call[Dequeued[Leased]], wait_s: float, connection: AsyncLentConnection | None = None
    ) -> Dequeued[Leased]:
        """Ask once, or until something comes or the time is over."""
        if not wait_s:
            return await self._caller.perform(call, connection, self._leased)
        deadline = time.monotonic() + wait_s
        sleeper = self._sleepers.pop() if self._sleepers else AsyncSleeper(self._caller)
        try:
            reply = await sleeper.ask(call, self._leased)
            while not reply.leases and time.monotonic() < deadline:
                await sleeper.nap(reply, deadline)
                reply = await sleeper.ask(call, self._leased)
            sleeper.rest()
        finally:
            self._sleepers.append(sleeper)
        return reply

    async def close(self) -> None:
        while self._sleepers:
            await self._sleepers.pop().close()

    async def _leased(self, call: Call[Dequeued[Leased]], connection: AsyncBorrowed) -> Dequeued[Leased]:
        return await kept(self._caller.execute(call, connection), self._give_back)

    async def _read(
        self, reply: Dequeued[Leased], read_s: float, connection: AsyncLentConnection | None
    ) -> Dequeued[Leased]:
        deadline = time.monotonic() + read_s
        is_read = set[int]()
        for part in _parts([lease for lease in reply.leases if lease.id in reply.unread], reply):
            ids, tokens = [lease.id for lease in part], [lease.token for lease in part]
            found = await self._caller.perform(calls.read(ids, tokens), connection)
            for lease in part:
                if lease.id in found:
                    fill(lease, found[lease.id])
                    is_read.add(lease.id)
            if time.monotonic() > deadline:
                break
        # Cancelled before it could be read, or not read in time: its lease still holds a place.
        left = [lease for lease in reply.leases if lease.id in reply.unread and lease.id not in is_read]
        if left:
            await acknowledge(self._caller, GIVE_BACK, left, connection=connection, repeat_busy=False)
        leases = tuple(lease for lease in reply.leases if lease.id in is_read or lease.id not in reply.unread)
        return replace(reply, leases=leases, unread={})

    async def _give_back(self, reply: Dequeued[Leased]) -> None:
        try:
            if reply.leases:
                await acknowledge(self._caller, GIVE_BACK, reply.leases, repeat_busy=False)
        except (LonnyError, psycopg.Error):
            # They come again when their leases end.
            pass


def _parts(leases: list[Leased], reply: Dequeued[Leased]) -> list[list[Leased]]:
    """Return the leases in groups whose contents are of bounded size."""
    parts: list[list[Leased]] = []
    room = 0
    for lease in leases:
        room -= reply.unread[lease.id]
        if not parts or room < 0:
            parts.append([])
            room = READ_BYTES - reply.unread[lease.id]
        parts[-1].append(lease)
    return parts
