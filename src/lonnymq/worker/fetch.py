"""Fetches messages: one call at a time, for as many messages as the process can hold."""

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING

from lonnymq.calls import message as calls
from lonnymq.client.aio import AsyncMessage
from lonnymq.client.aio.receiver import AsyncReceiver
from lonnymq.client.aio.sleeper import AWAKE_S
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import is_permanent
from lonnymq.worker.timeouts import call_within, close_quietly

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncQueue
    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.worker.inventory import Inventory
    from lonnymq.worker.settings import WorkerSettings
    from lonnymq.worker.worker_log import WorkerLog


async def fetch(
    caller: "AsyncCaller",
    queue: "AsyncQueue",
    inventory: "Inventory",
    settings: "WorkerSettings",
    log: "WorkerLog",
) -> None:
    """Fetch until cancelled. `queue` is the client that handlers use through their messages."""
    dequeue = partial(
        calls.dequeue,
        lease_ms=settings.lease_ms,
        worker=log.worker,
        is_durable=False,
        # If this process dies, any message that it holds may be the reason, even one that has ended and is
        # not acknowledged yet.
        is_shared=True,
        kind=AsyncMessage,
        more={"queue": queue, "attempt_state": None},
    )
    receiver = AsyncReceiver(caller)
    backoff = Backoff()
    # An idle call returns after this time, so that a hanging call can be told from a waiting one.
    wait_s = settings.call_timeout_s
    try:
        while True:
            capacity = await _wait_for_capacity(caller, receiver, inventory, settings)
            # How fast messages were processed before a pause says nothing about those that come after it.
            idle_capacity = min(capacity, max(inventory.free_places, 1))
            leasing = receiver.lease(dequeue(capacity), wait_s, call_when_idle=dequeue(idle_capacity))
            try:
                inventory.add(
                    await call_within(
                        caller.source, wait_s + settings.call_timeout_s, leasing, undo=inventory.add
                    )
                )
            except Exception as error:
                if is_permanent(error):
                    raise
                log.log_failure("dequeue", error)
                await asyncio.sleep(backoff.next_s())
            else:
                backoff.reset()
                log.log_recovery("dequeue")
                # Handlers that were waiting for these messages start before the next call is prepared.
                await asyncio.sleep(0)
    finally:
        await close_quietly(receiver.close())


async def _wait_for_capacity(
    caller: "AsyncCaller", receiver: AsyncReceiver, inventory: "Inventory", settings: "WorkerSettings"
) -> int:
    """Wait until the process can hold more messages; if that takes long, producers need not notify it."""
    while not (capacity := await inventory.wait_for_capacity(AWAKE_S)):
        with contextlib.suppress(TimeoutError):
            await call_within(caller.source, settings.call_timeout_s, receiver.withdraw_unused_sleepers())
    return capacity
