"""Checks at the start that the worker can use the queue."""

import asyncio
import shlex
from typing import TYPE_CHECKING

from lonnymq.calls import queue as queue_calls
from lonnymq.connections import outage
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import NotPermitted, is_permanent
from lonnymq.texts import one_line
from lonnymq.worker.timeouts import call_within, close_quietly
from lonnymq.worker.worker_log import LOGGER

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncQueue
    from lonnymq.worker.client_factory import ClientFactory
    from lonnymq.worker.shutdown import Shutdown


async def wait_for_queue(clients: "ClientFactory", shutdown: "Shutdown", call_timeout_s: float) -> bool:
    """Wait until the queue can be used; raise an error that waiting cannot solve.

    Returns False if the worker is asked to stop first.
    """
    queue = clients.internal_queue(1)
    checking = asyncio.ensure_future(_check_until_usable(queue, call_timeout_s))
    stopping = asyncio.ensure_future(shutdown.requested.wait())
    try:
        await asyncio.wait({checking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not checking.done():
            return False
        checking.result()
        return True
    finally:
        for task in (checking, stopping):
            task.cancel()
        await asyncio.wait({checking, stopping})
        await close_quietly(queue.close())


async def _check_until_usable(queue: "AsyncQueue", call_timeout_s: float) -> None:
    backoff = Backoff(max_s=1.0)
    is_logged = False
    while True:
        try:
            await call_within(queue.caller.source, call_timeout_s, _require_queue(queue))
        except Exception as error:
            if is_permanent(error):
                raise
            # The client logs outages itself.
            if not (is_logged or outage.is_known()):
                LOGGER.warning("the queue cannot be used yet, trying again: %s", one_line(str(error)))
            is_logged = True
            await asyncio.sleep(backoff.next_s())
        else:
            return


async def _require_queue(queue: "AsyncQueue") -> None:
    await queue.caller.require_queue()
    found = await queue.caller.perform(queue_calls.may_dequeue(queue.schema))
    if found is None:
        return
    role, is_permitted = found
    if not is_permitted:
        raise NotPermitted(
            f"role {role!r} is not permitted to process the messages of this queue; as the queue's owner, run"
            f" `lonnymq grant {shlex.quote(role)} worker`"
        )
