"""Creates the partitions of history ahead of time. Every worker asks; the database decides if one is due."""

import asyncio
from typing import TYPE_CHECKING

from lonnymq.calls import history as calls
from lonnymq.connections.backoff import Backoff
from lonnymq.worker.timeouts import call_within

if TYPE_CHECKING:
    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.worker.worker_log import WorkerLog

# Pauses after errors. Partitions exist for two weeks ahead.
FIRST_RETRY_S, MAX_RETRY_S = 5.0, 600.0


class HistoryKeeper:
    """If nobody creates partitions, attempts go to history_overflow, so a failure is never urgent."""

    def __init__(self, caller: "AsyncCaller", log: "WorkerLog", call_timeout_s: float) -> None:
        self._caller = caller
        self._log = log
        self._call_timeout_s = call_timeout_s

    async def run(self) -> None:
        """Ask again and again until cancelled."""
        backoff = Backoff(first_s=FIRST_RETRY_S, max_s=MAX_RETRY_S)
        while True:
            try:
                preparing = self._caller.perform(calls.prepare_if_due())
                wait_ms, created = await call_within(self._caller.source, self._call_timeout_s, preparing)
                self._log.log_recovery("preparing history")
                if created:
                    self._log.info(f"created {created} partitions of history")
                backoff.reset()
                pause_s = wait_ms / 1000
            except Exception as error:  # noqa: BLE001 - the worker processes messages without it
                self._log.log_failure("preparing history", error)
                pause_s = backoff.next_s()
            await asyncio.sleep(pause_s)
