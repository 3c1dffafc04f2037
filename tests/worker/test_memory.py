"""A worker keeps nothing of processed messages."""

import asyncio
import gc
import sys

import pytest

from lonnymq import AsyncMessage, AsyncQueue, Defer, Message, NewMessage
from tests.worker.workers import handler_without_delay, running_worker, wait_until_drained

BEFORE, AFTER = 3_000, 12_000


@pytest.mark.slow
def test_memory_does_not_grow_over_thousands_of_messages(dsn: str) -> None:
    """Compare the interpreter's allocated blocks: a leak of one block per message would be seen."""
    blocks: list[int] = []

    async def on_loop(message: AsyncMessage) -> None:
        if message.attempt == 1 and message.payload % 10 == 0:
            raise Defer(0)

    def in_thread(message: Message) -> None:
        return None

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            for handler, count in ((on_loop, BEFORE), (in_thread, 500), (on_loop, AFTER), (in_thread, 2000)):
                await queue.enqueue_many([NewMessage(channel=f"c{n % 50}", payload=n) for n in range(count)])
                async with running_worker(queue, handler_without_delay(handler)):
                    await wait_until_drained(queue)
                gc.collect()
                blocks.append(sys.getallocatedblocks())

    asyncio.run(scenario())
    assert blocks[2] - blocks[0] < AFTER / 4
    assert blocks[3] - blocks[1] < AFTER / 4
