"""Reports every few seconds what this process is and does, and learns from the reply if it is to drain."""

import asyncio
import contextlib
import heapq
import os
import socket
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import psycopg

import lonnymq
from lonnymq.calls import worker as calls
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import LonnyError
from lonnymq.model import WorkerReport
from lonnymq.texts import truncate
from lonnymq.worker.timeouts import call_within, run_within

if TYPE_CHECKING:
    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.worker.inventory import Inventory
    from lonnymq.worker.presence import Presence
    from lonnymq.worker.shutdown import Shutdown
    from lonnymq.worker.worker_log import WorkerLog

# What worker_report takes.
MAX_TASKS = 50
MAX_TASK_CHARACTERS = 100
MAX_HOLDS = 10
# Pauses after errors: nothing depends on a report.
FIRST_RETRY_S, MAX_RETRY_S = 1.0, 30.0
# How long to try to tell the queue that this process stops.
LEAVE_S = 1.0


class Reporter:
    """Nothing depends on a report: if none arrives, the process is shown as gone, and works nevertheless."""

    def __init__(
        self,
        caller: "AsyncCaller",
        presence: "Presence",
        inventory: "Inventory",
        shutdown: "Shutdown",
        log: "WorkerLog",
        *,
        call_timeout_s: float,
        slots: int,
        tasks: Iterable[str],
    ) -> None:
        self._caller = caller
        self._presence = presence
        self._inventory = inventory
        self._shutdown = shutdown
        self._log = log
        self._call_timeout_s = call_timeout_s
        self._slots = slots
        self._host = _storable(socket.gethostname(), 255)
        self._tasks = tuple(
            _storable(name, MAX_TASK_CHARACTERS) for name in heapq.nsmallest(MAX_TASKS, tasks)
        )
        self._started_at = time.monotonic()
        self._has_reported = False

    async def run(self) -> None:
        """Report until cancelled."""
        backoff = Backoff(first_s=FIRST_RETRY_S, max_s=MAX_RETRY_S)
        identity = self._presence.identity
        while True:
            try:
                call = calls.report(identity.name, identity.secret, self._describe())
                self._has_reported = True
                reply = await call_within(
                    self._caller.source, self._call_timeout_s, self._caller.perform(call)
                )
                self._log.log_recovery("reporting")
                backoff.reset()
                if reply.is_asked_to_drain and not self._shutdown.draining.is_set():
                    self._log.info("asked to drain")
                    self._shutdown.drain()
                pause_s = reply.wait_ms / 1000
            except Exception as error:  # noqa: BLE001 - the worker processes messages without it
                self._log.log_failure("reporting", error)
                pause_s = backoff.next_s()
            await asyncio.sleep(pause_s)

    async def leave(self) -> None:
        """Have the queue forget this process, because it stops and holds no leases; ignore failures."""
        if self._has_reported or self._presence.is_registered:
            identity = self._presence.identity
            call = calls.leave(identity.name, identity.secret)
            with contextlib.suppress(LonnyError, psycopg.Error, TimeoutError):
                await run_within(LEAVE_S, self._caller.perform(call))

    def _describe(self) -> WorkerReport:
        inventory = self._inventory
        oldest = heapq.nsmallest(MAX_HOLDS, inventory.held, key=lambda attempt: attempt.sequence)
        messages = [attempt.message for attempt in oldest]
        return WorkerReport(
            host=self._host,
            pid=os.getpid(),
            version=lonnymq.__version__,
            tasks=self._tasks,
            slots=self._slots,
            uptime_ms=round((time.monotonic() - self._started_at) * 1000),
            has_session=self._presence.is_registered,
            busy=inventory.occupied_slots,
            held=len(inventory.held),
            message_ids=tuple(message.id for message in messages),
            channels=tuple(message.channel for message in messages),
            leased_us=tuple(message.leased_us for message in messages),
            is_draining=self._shutdown.draining.is_set(),
        )


def _storable(text: str, most: int) -> str:
    """Return a text that PostgreSQL can store."""
    return truncate(text.replace("\0", "").encode("utf-8", "backslashreplace").decode("utf-8"), most)
