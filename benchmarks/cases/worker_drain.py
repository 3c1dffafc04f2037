"""A worker whose handler does nothing, against the client that dequeues and completes 100 at a time."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

from benchmarks import fleet
from benchmarks.bench import Bench, Case, Row
from benchmarks.cases.worker_memory import MIB, worker_bytes
from benchmarks.contenders import Ours
from benchmarks.fleet import Gate
from benchmarks.load import channel_names
from lonnymq import AsyncMessage, AsyncQueue, Worker

TITLE = "one worker process, default settings, a handler that does nothing"
NAME = "worker-drain"
CHANNELS = 100
BATCH = 100
# Then connections are open, statements are prepared, and batches have their size.
WARM_UP_MESSAGES = 1_000


def run(bench: Bench) -> list[Row]:
    rates = bench.interleaved(
        NAME, {"worker": partial(measure, bench, work_for), "client": partial(measure, bench, drain_for)}
    )
    messages = bench.effort.drained_for_memory // 2
    with bench.installed(Ours()) as dsn:
        Ours().fill(dsn, channel_names(CHANNELS), messages)
        [gained_mib] = fleet.run([partial(gain, dsn, messages)])
    note = f"{messages:,} messages"
    return [
        Row(NAME, TITLE, "client, batch 100", "messages/s", rates["worker"], rates["client"], at_least=0.5),
        Row(NAME, "memory it gains after the first tenth", None, "MiB", gained_mib, at_most=4, note=note),
    ]


def measure(bench: Bench, job: Callable[[str, float, Gate], float]) -> float:
    with bench.installed(Ours()) as dsn:
        Ours().fill(dsn, channel_names(CHANNELS), bench.effort.backlog)
        [rate] = fleet.run([partial(job, dsn, bench.effort.window_s)])
    return rate


def drain_for(dsn: str, window_s: float, gate: Gate) -> float:
    """What the client alone does in that time, per second."""

    async def drain() -> float:
        async with AsyncQueue(dsn) as queue:
            messages = 0
            while messages < WARM_UP_MESSAGES:
                messages += len(await queue.complete(await queue.dequeue(BATCH)))
            gate()
            began_at, messages = time.monotonic(), 0
            while time.monotonic() < began_at + window_s:
                messages += len(await queue.complete(await queue.dequeue(BATCH)))
            return messages / (time.monotonic() - began_at)

    return asyncio.run(drain())


def work_for(dsn: str, window_s: float, gate: Gate) -> float:
    """What a worker does in that time, per second."""
    gate()
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


def gain(dsn: str, messages: int, gate: Gate) -> float:
    """Return by how many MiB a worker grows while it drains all of them."""
    gate()
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
