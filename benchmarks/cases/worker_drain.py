"""A worker with a no-op handler, compared with a client that dequeues and completes 100 at a time."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

from benchmarks import parallel
from benchmarks.cases.worker_memory import MIB, worker_bytes
from benchmarks.contenders import LonnyMQ
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names
from benchmarks.parallel import StartBarrier
from lonnymq import AsyncMessage, AsyncQueue, Worker

TITLE = "one worker process, default settings, no-op handler"
NAME = "worker-drain"
CHANNELS = 100
BATCH = 100
# After this many messages, connections are open, statements are prepared, and batch sizes are stable.
WARM_UP_MESSAGES = 1_000


def run(harness: Harness) -> list[Row]:
    rates = harness.measure_in_turns(
        NAME, {"worker": partial(measure, harness, work_for), "client": partial(measure, harness, drain_for)}
    )
    messages = harness.effort.drained_for_memory // 2
    with harness.install(LonnyMQ()) as dsn:
        LonnyMQ().fill(dsn, channel_names(CHANNELS), messages)
        [growth_mib] = parallel.run([partial(memory_growth, dsn, messages)])
    note = f"{messages:,} messages"
    return [
        Row(NAME, TITLE, "client, batch 100", "messages/s", rates["worker"], rates["client"], at_least=0.5),
        Row(
            NAME,
            "memory growth of the worker after the first tenth",
            None,
            "MiB",
            growth_mib,
            at_most=4,
            note=note,
        ),
    ]


def measure(harness: Harness, job: Callable[[str, float, StartBarrier], float]) -> float:
    with harness.install(LonnyMQ()) as dsn:
        LonnyMQ().fill(dsn, channel_names(CHANNELS), harness.effort.backlog)
        [rate] = parallel.run([partial(job, dsn, harness.effort.window_s)])
    return rate


def drain_for(dsn: str, window_s: float, start: StartBarrier) -> float:
    """Return the client's rate in messages per second."""

    async def drain() -> float:
        async with AsyncQueue(dsn) as queue:
            messages = 0
            while messages < WARM_UP_MESSAGES:
                messages += len(await queue.complete(await queue.dequeue(BATCH)))
            start()
            began_at, messages = time.monotonic(), 0
            while time.monotonic() < began_at + window_s:
                messages += len(await queue.complete(await queue.dequeue(BATCH)))
            return messages / (time.monotonic() - began_at)

    return asyncio.run(drain())


def work_for(dsn: str, window_s: float, start: StartBarrier) -> float:
    """Return the worker's rate in messages per second."""
    start()
    messages, began_at, took_s = 0, 0.0, 0.0

    async def handle(message: AsyncMessage) -> None:
        nonlocal messages, began_at, took_s
        messages += 1
        if messages == WARM_UP_MESSAGES:
            began_at = time.monotonic()
        elif messages > WARM_UP_MESSAGES and not took_s and time.monotonic() > began_at + window_s:
            took_s = time.monotonic() - began_at
            worker.stop()

    worker = Worker(dsn, handle)
    asyncio.run(worker.serve())
    return (worker.counts["completed"] - WARM_UP_MESSAGES) / took_s


def memory_growth(dsn: str, messages: int, start: StartBarrier) -> float:
    """Return by how many MiB a worker's memory grows while it drains the messages."""
    start()
    seen, before, after = 0, 0, 0

    async def handle(message: AsyncMessage) -> None:
        nonlocal seen, before, after
        seen += 1
        if seen == messages // 10:
            before = worker_bytes()
        elif seen == messages:
            after = worker_bytes()
            worker.stop()

    worker = Worker(dsn, handle)
    asyncio.run(worker.serve())
    return (after - before) / MIB


CASE = Case(NAME, TITLE, run)
