"""Processes everything that is due, in the test's own process, until the queue is empty."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, overload

from lonnymq.calls import argument
from lonnymq.client.aio import AsyncQueue
from lonnymq.client.sync import Queue
from lonnymq.errors import InvalidArgument, invalid
from lonnymq.model import DequeueOutcome
from lonnymq.testing.blocking_calls import BlockingCall
from lonnymq.testing.clock import Clock
from lonnymq.testing.in_process_worker import SETTINGS, in_process_worker
from lonnymq.testing.recorder import AttemptFailed, ProcessedAttempt, Recorder
from lonnymq.testing.simulated_time import RealTime, SimulatedTime, simulate_time
from lonnymq.worker.client_factory import ClientFactory
from lonnymq.worker.handler import enter_lifespan
from lonnymq.worker.middleware import Middleware

if TYPE_CHECKING:
    from lonnymq.tasks import App

BUSY_S = 0.01


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What to process, with which handler, and when to stop."""

    handler: Any
    clients: ClientFactory
    clock: Clock | None
    until: datetime | timedelta | None
    middleware: tuple[Middleware, ...]
    raises_errors: bool
    limit: int


@overload
def run_until_empty(
    handler: "App[Queue]",
    *,
    queue: None = None,
    clock: Clock | None = None,
    until: datetime | timedelta | None = None,
    errors: Literal["raise", "keep"] = "raise",
    middleware: Sequence[Middleware] = (),
    limit: int = 10_000,
) -> list[ProcessedAttempt]: ...
@overload
def run_until_empty(
    handler: "App[AsyncQueue]",
    *,
    queue: None = None,
    clock: Clock | None = None,
    until: datetime | timedelta | None = None,
    errors: Literal["raise", "keep"] = "raise",
    middleware: Sequence[Middleware] = (),
    limit: int = 10_000,
) -> Coroutine[Any, Any, list[ProcessedAttempt]]: ...
@overload
def run_until_empty(
    handler: Any,
    *,
    queue: Queue,
    clock: Clock | None = None,
    until: datetime | timedelta | None = None,
    errors: Literal["raise", "keep"] = "raise",
    middleware: Sequence[Middleware] = (),
    limit: int = 10_000,
) -> list[ProcessedAttempt]: ...
@overload
def run_until_empty(
    handler: Any,
    *,
    queue: AsyncQueue,
    clock: Clock | None = None,
    until: datetime | timedelta | None = None,
    errors: Literal["raise", "keep"] = "raise",
    middleware: Sequence[Middleware] = (),
    limit: int = 10_000,
) -> Coroutine[Any, Any, list[ProcessedAttempt]]: ...
def run_until_empty(
    handler: Any,
    *,
    queue: Queue | AsyncQueue | None = None,
    clock: Clock | None = None,
    until: datetime | timedelta | None = None,
    errors: Literal["raise", "keep"] = "raise",
    middleware: Sequence[Middleware] = (),
    limit: int = 10_000,
) -> list[ProcessedAttempt] | Coroutine[Any, Any, list[ProcessedAttempt]]:
    """Process all due messages, one at a time, and return the attempts; with an AsyncQueue, await it.

    `handler` is what a Worker takes; for an App, `queue` may be omitted. With a `clock`, crons tick; with
    `until`, time skips from one due message to the next, up to there. An exception of a handler is raised
    here, after its attempt has ended as in a worker; with `errors="keep"` it is only recorded.
    """
    if queue is None:
        queue = getattr(handler, "queue", None)
    if not isinstance(queue, Queue | AsyncQueue):
        raise invalid("queue", queue, "a Queue or an AsyncQueue (an App has its own)")
    if errors not in ("raise", "keep"):
        raise invalid("errors", errors, '"raise" or "keep"')
    if until is not None and clock is None:
        raise InvalidArgument("until needs a clock: without one, time cannot skip ahead")
    if isinstance(until, datetime):
        argument.epoch_ms("until", until)
    elif until is not None:
        argument.seconds("until", until)
    options = RunOptions(
        handler=handler,
        clients=ClientFactory.of(queue),
        clock=clock,
        until=until,
        middleware=tuple(middleware),
        raises_errors=errors == "raise",
        limit=argument.whole("limit", limit, 1, argument.MAX_INTEGER),
    )
    return _run_blocking(options) if isinstance(queue, Queue) else _run_async(options)


def _run_blocking(options: RunOptions) -> list[ProcessedAttempt]:
    """Run async handlers on a loop in this thread, and plain ones in this thread while it is stopped."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise InvalidArgument("queue must be an AsyncQueue while an event loop is running: await this call")
    attempts: list[ProcessedAttempt] = []
    with asyncio.Runner() as runner:
        calls = _process(options, attempts)
        try:
            while call := runner.run(_next(calls)):
                call.run()
        finally:
            runner.run(_close(calls))
    return attempts


async def _run_async(options: RunOptions) -> list[ProcessedAttempt]:
    """Run async handlers on this loop, and plain ones in a thread, as in a worker."""
    attempts: list[ProcessedAttempt] = []
    async with aclosing(_process(options, attempts)) as calls:
        async for call in calls:
            await call.run_in_thread()
    return attempts


async def _next(calls: AsyncGenerator[BlockingCall, None]) -> BlockingCall | None:
    return await anext(calls, None)


async def _close(calls: AsyncGenerator[BlockingCall, None]) -> None:
    await calls.aclose()


async def _process(
    options: RunOptions, attempts: list[ProcessedAttempt]
) -> AsyncGenerator[BlockingCall, None]:
    """Process messages until nothing is due; yield the calls that block."""
    queue, blocking_queue = options.clients.async_queue(), options.clients.blocking_queue()
    try:
        async with (
            enter_lifespan(options.handler),
            in_process_worker(queue, blocking_queue, options.handler, options.middleware) as worker,
        ):
            worker.recorder.attempts = attempts
            time: RealTime | SimulatedTime = RealTime()
            if options.clock is not None:
                time = await simulate_time(queue, options.handler, options.until)
            while True:
                await time.tick()
                batch = await queue.dequeue(
                    worker.limit, lease_s=SETTINGS.lease_s, worker=worker.recorder.worker
                )
                async for call in worker.work(batch):
                    yield call
                _raise_failure(options, worker.recorder)
                if batch.outcome is DequeueOutcome.BUSY:
                    await asyncio.sleep(BUSY_S)
                elif not batch and not await time.skip_ahead():
                    return
    finally:
        if queue is not options.clients.given:
            await queue.close()
        if blocking_queue is not options.clients.given:
            blocking_queue.close()


def _raise_failure(options: RunOptions, recorder: Recorder) -> None:
    failure, recorder.failure = recorder.failure, None
    if failure is not None and options.raises_errors:
        raise failure
    if len(recorder.attempts) > options.limit:
        raise AttemptFailed(
            f"the queue is not empty after {options.limit} attempts: raise limit, unless a handler enqueues"
            " its message again"
        )
