"""Reads contents that were too large for the reply of a dequeue, a few at a time."""

import asyncio
from typing import TYPE_CHECKING

from lonnymq.calls import message as calls
from lonnymq.connections.backoff import Backoff
from lonnymq.worker.timeouts import call_within, timeout_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.model.lease import Content
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.inventory import Inventory
    from lonnymq.worker.worker_log import WorkerLog


class ContentReader:
    """A message can start as soon as its batch is read; heartbeats keep the leases of the rest."""

    def __init__(
        self, caller: "AsyncCaller", inventory: "Inventory", log: "WorkerLog", call_timeout_s: float
    ) -> None:
        self._caller = caller
        self._inventory = inventory
        self._log = log
        self._call_timeout_s = call_timeout_s
        self._backoff = Backoff()

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            attempts = await self._inventory.unread.next_batch()
            try:
                contents = await self.read(attempts)
            except Exception as error:  # noqa: BLE001 - the worker continues after any error
                self._log.log_failure("reading contents", error)
                self._inventory.give_back_unread()
                await asyncio.sleep(self._backoff.next_s())
            else:
                self._log.log_recovery("reading contents")
                self._backoff.reset()
                self._inventory.add_contents(contents)
                # Free this memory now, not when the next batch is read.
                del contents
            del attempts

    async def read(self, attempts: "Sequence[Attempt]") -> "dict[int, Content]":
        """Return the contents by message id, without messages that were cancelled or whose lease was lost."""
        size = sum(attempt.unread_bytes for attempt in attempts)
        call = calls.read(
            [attempt.message.id for attempt in attempts], [attempt.message.token for attempt in attempts]
        )
        return await call_within(
            self._caller.source, timeout_for(self._call_timeout_s, size), self._caller.perform(call)
        )
