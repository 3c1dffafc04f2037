"""Workers for the tests: on the test's own loop, or in a process of their own."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lonnymq import AsyncQueue, DeadLetter, Handler, NewMessage, QueueStatus, Retry, Worker, WorkerSettings
from tests.forked import ForkedProgram

TIMEOUT_S = 200.0
NO_DELAY = Retry(first_s=0.0, max_s=0.0)


@asynccontextmanager
async def running_worker(
    queue: Any, handler: Any, middleware: Any = (), **settings: Any
) -> AsyncIterator[Worker]:
    """Run a worker on this event loop, and stop it at the end."""
    settings = {"concurrency": 4, "lease_s": 5, "shutdown_s": 10, **settings}
    worker = Worker(queue, handler, settings=WorkerSettings(**settings), middleware=middleware)
    serving = asyncio.create_task(worker.serve())
    try:
        yield worker
    finally:
        worker.stop()
        async with asyncio.timeout(TIMEOUT_S):
            await serving


def finished(worker: Worker) -> dict[str, int]:
    """How many attempts ended with which outcome, without messages that were given back unstarted.

    On a busy machine any process may be so slow that it gives some back; they are delivered again.
    """
    return {outcome: count for outcome, count in worker.counts.items() if outcome != "given_back"}


@dataclass(frozen=True)
class RunResult:
    """How the attempts of a worker ended, and the dead letters in the queue afterwards."""

    counts: dict[str, int]
    dead_letters: Sequence[DeadLetter]
    took_s: float


def run_worker(dsn: str, handler: Any, *payloads: Any, middleware: Any = (), **settings: Any) -> RunResult:
    """Enqueue messages, run a worker until the queue is empty, and stop it."""

    async def scenario() -> RunResult:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue_many([NewMessage(channel="a", payload=one) for one in payloads])
            began = time.monotonic()
            async with running_worker(queue, handler, middleware, **settings) as worker:
                await wait_until_drained(queue)
                took_s = time.monotonic() - began
            return RunResult(finished(worker), await queue.dead().list(), took_s)

    return asyncio.run(scenario())


def handler_without_delay(call: Any, **options: Any) -> Handler:
    """Return a handler whose messages are retried at once."""
    return Handler(call=call, retry=NO_DELAY, **options)


def is_drained(status: QueueStatus) -> bool:
    """Whether no message is waiting or leased.

    Two calls of `queue.status()` do not tell: between them, a message may go from one count to the other.
    """
    return status.waiting == status.leased == 0


async def wait_until_drained(queue: AsyncQueue) -> None:
    """Wait until no message is waiting or leased."""
    async with asyncio.timeout(TIMEOUT_S):
        while not is_drained(await queue.status()):  # noqa: ASYNC110 - another process drains it
            await asyncio.sleep(0.02)


async def wait_until(condition: Any, what: str) -> None:
    """Wait until a condition holds; it may be a coroutine function."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        found = condition()
        if (await found) if asyncio.iscoroutine(found) else found:
            return
        assert time.monotonic() < deadline, f"timed out waiting until {what}"
        await asyncio.sleep(0.02)


def eventually(condition: Callable[[], Any], what: str = "") -> Any:
    """Wait until a condition holds, and return what it returned."""
    until = time.monotonic() + TIMEOUT_S
    while not (found := condition()):
        assert time.monotonic() < until, f"timed out waiting for {what or condition}"
        time.sleep(0.02)
    return found


class WorkerProcess:
    """A worker as an operator sees it: a process with signals, an exit code and a log."""

    def __init__(self, dsn: str, log: Path, program: str, **settings: Any) -> None:
        self.log = log
        self.stderr = log.with_suffix(".stderr")
        arguments = json.dumps({"dsn": dsn, "log": str(log), "program": program, "settings": settings})
        self._process = ForkedProgram("tests.worker.program", arguments, output=self.stderr)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_dead(self) -> bool:
        return self._process.poll() is not None

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """Return the events that handlers have recorded, in order."""
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if kind in ("", line["event"])]

    def ids(self, kind: str) -> list[int]:
        return [event["id"] for event in self.events(kind)]

    def wait_for(self, kind: str, count: int = 1) -> None:
        def has_happened() -> bool:
            assert self._process.poll() is None, f"the process has ended: {self.log_text()}"
            return len(self.events(kind)) >= count

        eventually(has_happened, f"{count} events of kind {kind!r}")

    def wait_for_ids(self, kind: str, ids: list[int]) -> None:
        """Wait for events of these messages; under load any of them may occur twice."""

        def have_happened() -> bool:
            assert self._process.poll() is None, f"the process has ended: {self.log_text()}"
            return set(ids) <= set(self.ids(kind))

        eventually(have_happened, f"events of kind {kind!r} of {ids}")

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.send(number)
        return self.wait_for_exit()

    def wait_for_exit(self) -> int:
        """Wait for the exit code."""
        return self._process.wait(TIMEOUT_S)

    def release(self) -> None:
        """Let handlers end whose payload says "wait"."""
        self.log.with_name(f"{self.log.name}.go").touch()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def log_text(self) -> str:
        return self.stderr.read_text()


def append_event(path: str, **event: Any) -> None:
    """Append an event in one system call: a killed process has written all of it or nothing."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, (json.dumps(event) + "\n").encode())
    os.close(descriptor)
