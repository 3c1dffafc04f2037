"""Workers for the tests: on the test's own loop, or in a process of their own."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lonnymq import AsyncQueue, DeadLetter, Handler, NewMessage, Retry, Worker, WorkerSettings

TIMEOUT_S = 60.0
NO_DELAY = Retry(first_s=0.0, most_s=0.0)


@asynccontextmanager
async def running_worker(
    queue: Any, handler: Any, middleware: Any = (), **settings: Any
) -> AsyncIterator[Worker]:
    """A worker at work on this loop, stopped at the end."""
    settings = {"concurrency": 4, "lease_s": 5, "shutdown_s": 10, **settings}
    worker = Worker(queue, handler, settings=WorkerSettings(**settings), middleware=middleware)
    serving = asyncio.create_task(worker.serve())
    try:
        yield worker
    finally:
        worker.stop()
        async with asyncio.timeout(TIMEOUT_S):
            await serving


@dataclass(frozen=True)
class RunResult:
    """What a worker did, and what it left in the queue."""

    counts: dict[str, int]
    dead_letters: Sequence[DeadLetter]
    took_s: float


def run_worker(dsn: str, handler: Any, *payloads: Any, middleware: Any = (), **settings: Any) -> RunResult:
    """Enqueue these, have them worked until nothing is left, and stop."""

    async def scenario() -> RunResult:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue_many([NewMessage(channel="a", payload=one) for one in payloads])
            began = time.monotonic()
            async with running_worker(queue, handler, middleware, **settings) as worker:
                await wait_until_drained(queue)
                took_s = time.monotonic() - began
            return RunResult(dict(worker.counts), await queue.dead().list(), took_s)

    return asyncio.run(scenario())


def handler_without_delay(call: Any, **options: Any) -> Handler:
    """A handler whose retries come at once."""
    return Handler(call=call, retry=NO_DELAY, **options)


async def is_drained(queue: AsyncQueue) -> bool:
    status = await queue.status()
    return status.waiting == status.leased == 0


async def wait_until_drained(queue: AsyncQueue) -> None:
    """Wait until nothing waits and nothing is leased."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await is_drained(queue):  # noqa: ASYNC110 - another process drains it
            await asyncio.sleep(0.02)


def eventually(condition: Callable[[], Any], what: str = "") -> Any:
    """Wait until a condition holds, and return what it returned."""
    until = time.monotonic() + TIMEOUT_S
    while not (found := condition()):
        assert time.monotonic() < until, f"still not: {what or condition}"
        time.sleep(0.02)
    return found


class WorkerProcess:
    """A worker as its operator sees it: a process that takes signals and leaves an exit code."""

    def __init__(self, dsn: str, log: Path, program: str, **settings: Any) -> None:
        self.log = log
        self.stderr = log.with_suffix(".stderr")
        arguments = json.dumps({"dsn": dsn, "log": str(log), "program": program, "settings": settings})
        with self.stderr.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.worker.program", arguments], stderr=stderr, stdout=stderr
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_dead(self) -> bool:
        return self._process.poll() is not None

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """What its handlers have written down, in order."""
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if kind in ("", line["event"])]

    def ids(self, kind: str) -> list[int]:
        return [event["id"] for event in self.events(kind)]

    def wait_for(self, kind: str, count: int = 1) -> None:
        def is_there() -> bool:
            assert self._process.poll() is None, f"it has ended: {self.log_text()}"
            return len(self.events(kind)) >= count

        eventually(is_there, f"{count} times {kind}")

    def wait_for_ids(self, kind: str, ids: list[int]) -> None:
        """Wait for these; under load any of them may have come twice."""

        def are_there() -> bool:
            assert self._process.poll() is None, f"it has ended: {self.log_text()}"
            return set(ids) <= set(self.ids(kind))

        eventually(are_there, f"{kind} of {ids}")

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.send(number)
        return self.wait_for_exit()

    def wait_for_exit(self) -> int:
        """Wait for its end, and return its exit code."""
        return self._process.wait(TIMEOUT_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def log_text(self) -> str:
        return self.stderr.read_text()


def append_event(path: str, **event: Any) -> None:
    """Write an event down in one system call: whoever is killed has written all of it or nothing."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, (json.dumps(event) + "\n").encode())
    os.close(descriptor)
