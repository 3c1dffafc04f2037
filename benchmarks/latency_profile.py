"""Shows where the time goes between the commit of a message and the first line of its handler.

The producer creates a message and commits, in two statements, to time them separately. The worker has default
settings; its process notes the time at each step. Only messages that woke the worker are counted.
"""

import argparse
import asyncio
import time
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import psycopg

from benchmarks import parallel
from benchmarks.contenders import LonnyMQ
from benchmarks.parallel import StartBarrier
from benchmarks.server import Server, run_server
from lonnymq import AsyncMessage, Worker
from lonnymq.client.aio.sleeper import AsyncSleeper
from lonnymq.client.wakeup_backoff import WakeupBackoff
from lonnymq.worker.inventory import Inventory

if TYPE_CHECKING:
    from collections.abc import Callable

WARM_UP_MESSAGES = 50
STEPS = (
    "create the message",
    "COMMIT: write and flush WAL, signal the listener",
    "the notification reaches the worker's process",
    "the worker's process sends the dequeue",
    "the dequeue, and its round trip",
    "decode, and hand the message to a slot",
    "the slot reaches the handler's first line",
)
COMMIT = 1


@dataclass
class WorkerTimes:
    """When the worker last did something, in ns of the monotonic clock, which all processes share."""

    woken: int = 0
    dequeued: int = 0
    replied: int = 0
    added: int = 0


def main(arguments: list[str] | None = None) -> int:
    chosen = parse(arguments)
    with run_server(chosen.dsn, chosen.server) as server:
        for line in table(measure(server, chosen.messages, chosen.per_s)):
            print(line)
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency_profile", description=__doc__)
    parser.add_argument("--dsn", help="measure an existing server instead of starting one")
    parser.add_argument(
        "--server", choices=["system", "wheel"], default="system", help="binaries of the server to start"
    )
    parser.add_argument("--messages", type=int, default=1_000, help="messages to measure (default: 1000)")
    parser.add_argument("--per-s", type=float, default=50.0, help="messages per second (default: 50)")
    return parser.parse_args(arguments)


def measure(server: Server, messages: int, per_s: float) -> list[list[int]]:
    """Return the duration of each step, in ns, of each message that woke the worker."""
    with server.database() as dsn:
        LonnyMQ().install(dsn)
        count = WARM_UP_MESSAGES + messages
        jobs: list[Callable[[StartBarrier], Any]] = [
            partial(produce, dsn, count, per_s),
            partial(work, dsn, count),
        ]
        created, started = parallel.run(jobs)
    durations = []
    for number in range(WARM_UP_MESSAGES, count):
        began, executed, committed = created[number]
        times = started[number]
        if times[0] > executed:
            # The notification may arrive before the answer to the commit.
            steps = [began, executed, min(committed, times[0]), *times]
            durations.append([later - earlier for earlier, later in pairwise(steps)])
    return durations


def produce(dsn: str, count: int, per_s: float, start: StartBarrier) -> list[tuple[int, int, int]]:
    """Create messages whose content is their number; return when each was begun, executed, and committed."""
    times = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        start()
        began_at = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, began_at + 1 + number / per_s - time.monotonic()))
            connection.execute("begin")
            began = time.monotonic_ns()
            connection.execute("select lonnymq.message_create('tenant', %s)", (str(number).encode(),))
            executed = time.monotonic_ns()
            connection.execute("commit")
            times.append((began, executed, time.monotonic_ns()))
    return times


def work(dsn: str, count: int, start: StartBarrier) -> dict[int, tuple[int, ...]]:
    """Return, by the number of the message, the times of the worker's steps."""
    started: dict[int, tuple[int, ...]] = {}
    times = WorkerTimes()

    async def handle(message: AsyncMessage) -> None:
        now = time.monotonic_ns()
        started[int(message.payload)] = (times.woken, times.dequeued, times.replied, times.added, now)
        if len(started) == count:
            worker.stop()

    worker = Worker(dsn, handle)
    wake, dequeue, add = WakeupBackoff.wake, AsyncSleeper.dequeue, Inventory.add

    def noted_wake(self: WakeupBackoff, was_notified: bool) -> float:
        times.woken = time.monotonic_ns()
        return wake(self, was_notified)

    async def noted_dequeue(self: AsyncSleeper, call: Any) -> Any:
        times.dequeued = time.monotonic_ns()
        reply = await dequeue(self, call)
        times.replied = time.monotonic_ns()
        return reply

    def noted_add(self: Inventory, reply: Any) -> None:
        add(self, reply)
        times.added = time.monotonic_ns()

    with (
        patch.object(WakeupBackoff, "wake", noted_wake),
        patch.object(AsyncSleeper, "dequeue", noted_dequeue),
        patch.object(Inventory, "add", noted_add),
    ):
        start()
        asyncio.run(worker.serve())
    return started


def table(durations: list[list[int]]) -> list[str]:
    """Return a table of the steps in Markdown, with percentiles in µs."""
    after_commit = [sum(steps[COMMIT:]) for steps in durations]
    lines = ["| step | p50, µs | p95, µs | p99, µs |", "| --- | ---: | ---: | ---: |"]
    lines += [format_row(title, [steps[number] for steps in durations]) for number, title in enumerate(STEPS)]
    return [
        *lines,
        format_row("**from COMMIT to the handler's first line**", after_commit),
        "",
        f"{len(durations)} messages.",
    ]


def format_row(title: str, durations_ns: list[int]) -> str:
    ordered = sorted(durations_ns)
    found = [ordered[min(len(ordered) - 1, len(ordered) * part // 100)] for part in (50, 95, 99)]
    return f"| {title} | " + " | ".join(f"{duration / 1000:,.0f}" for duration in found) + " |"


if __name__ == "__main__":
    raise SystemExit(main())
