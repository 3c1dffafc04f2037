"""Brings messages into the process: one call at a time, for as many as there is room for."""

import asyncio
from typing import TYPE_CHECKING

from lonnymq.calls import message as calls
from lonnymq.client.aio import AsyncMessage
from lonnymq.client.aio.receiver import AsyncReceiver
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import is_hopeless
from lonnymq.worker.timeouts import call_within, close_quietly

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncQueue
    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.worker.inventory import Inventory
    from lonnymq.worker.report import Report
    from lonnymq.worker.settings import WorkerSettings


async def fetch(
    caller: "AsyncCaller",
    queue: "AsyncQueue",
    inventory: "Inventory",
    settings: "WorkerSettings",
    report: "Report",
) -> None:
    """Fetch for ever. `queue` is what the handlers' messages speak to."""
    receiver = AsyncReceiver(caller)
    backoff = Backoff()
    # An idle call ends after a while, so that one which hangs can be told from one which sleeps.
    wait_s = settings.patience_s
    try:
        while True:
            call = calls.dequeue(
                await inventory.room(),
                settings.lease_ms,
                report.worker,
                is_durable=False,
                # If this process dies, any of its messages may be the reason, also one that has ended and is
                # not acknowledged yet.
                is_shared=True,
                kind=AsyncMessage,
                more={"queue": queue, "attempt_state": None},
            )
            leasing = receiver.lease(call, wait_s)
            try:
                inventory.take(
                    await call_within(
                        caller.source, wait_s + settings.patience_s, leasing, undo=inventory.take
                    )
                )
            except Exception as error:
                if is_hopeless(error):
                    raise
                report.trouble("dequeue", error)
                await asyncio.sleep(backoff.next_s())
            else:
                backoff.reset()
                report.recovered("dequeue")
    finally:
        await close_quietly(receiver.close())
