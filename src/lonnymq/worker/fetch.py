"""Brings messages into the process: one call at a time, for as many as there is room for."""

import asyncio
from typing import TYPE_CHECKING

from lonnymq.worker.patience import PASSING, Pauses, answered

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncQueue
    from lonnymq.worker.hand import Hand
    from lonnymq.worker.report import Report
    from lonnymq.worker.settings import WorkerSettings


async def fetch(queue: "AsyncQueue", hand: "Hand", settings: "WorkerSettings", report: "Report") -> None:
    """Fetch for ever; a server that was reached once is waited for."""
    pauses = Pauses()
    # An idle call ends after a while, so that one which hangs can be told from one which sleeps.
    wait_s = settings.patience_s
    while True:
        limit = await hand.room()
        try:
            batch = await answered(
                queue.caller.source,
                wait_s + settings.patience_s,
                queue.dequeue(limit, lease_ms=settings.lease_ms, worker=report.worker, wait=wait_s),
                undo=hand.take,
            )
        except PASSING as error:
            if not queue.caller.source.was_reached:
                raise
            report.trouble("dequeue", error)
            await asyncio.sleep(pauses.next_s())
        else:
            pauses.reset()
            report.recovered("dequeue")
            hand.take(batch)
