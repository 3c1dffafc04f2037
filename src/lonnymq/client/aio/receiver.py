"""How messages come out: one dequeue, the contents it left out, and waiting for the next."""

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
from lonnymq.model import Dequeued
from lonnymq.model.acknowledge import GIVE_BACK
from lonnymq.model.lease import Leased, fill

# Contents that a reply left out are read this many bytes at a time.
READ_BYTES = 1024 * 1024


class AsyncReceiver:
    """Asks once or waits, and reads large contents; a cancelled caller's messages are given back."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller
        # Each waiting call takes one, and leaves it, still listening, for the next.
        self._sleepers: list[AsyncSleeper] = []

    async def receive(
        self,
        call: Call[Dequeued[Leased]],
        wait_s: float,
        read_s: float,
        connection: AsyncBorrowedConnection | None,
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
            await self._caller.undo(_give_back(reply))
            raise

    async def lease(
        self, call: Call[Dequeued[Leased]], wait_s: float, connection: AsyncBorrowedConnection | None = None
    ) -> Dequeued[Leased]:
        """Ask once, or until a message comes or the time is over; read nothing that the reply left out."""
        call = replace(call, undo=_give_back)
        if not wait_s:
            return await self._caller.perform(call, connection)
        deadline = time.monotonic() + wait_s
        sleeper = self._taken() or AsyncSleeper(self._caller)
        try:
            reply = await sleeper.ask(call)
            while not reply.leases and time.monotonic() < deadline:
                await sleeper.nap(reply, deadline)
                reply = await sleeper.ask(call)
            sleeper.content()
        finally:
            sleeper.rest()
            self._sleepers.append(sleeper)
            if self._caller.source.is_closed:
                await self.close()
        return reply

    async def close(self) -> None:
        """Close the connections of those at rest now, the others when their calls end."""
        while (sleeper := self._taken()) is not None:
            await sleeper.close()

    def _taken(self) -> AsyncSleeper | None:
        try:
            return self._sleepers.pop()
        except IndexError:
            return None

    async def _read(
        self, reply: Dequeued[Leased], read_s: float, connection: AsyncBorrowedConnection | None
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


def _give_back(reply: Dequeued[Leased]) -> Call[Any] | None:
    """Return the call that gives back all messages of a reply."""
    ids, tokens = [lease.id for lease in reply.leases], [lease.token for lease in reply.leases]
    return acknowledge_calls.acknowledge(GIVE_BACK, ids, tokens) if ids else None


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
