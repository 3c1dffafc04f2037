"""Working all that is due, in the test's own process, until there is nothing left."""

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
from lonnymq.testing.bench import SETTINGS, Bench, bench
from lonnymq.testing.clock import Clock
from lonnymq.testing.outside import Job
from lonnymq.testing.passing import Standing, passing
from lonnymq.testing.record import AttemptFailed, WorkedAttempt
from lonnymq.worker.clients import Clients
from lonnymq.worker.pipeline import Middleware

if TYPE_CHECKING:
    from lonnymq.model import Created
    from lonnymq.tasks import App

BUSY_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be worked, by whom, and when that is enough."""

    handler: Any
    clients: Clients
    clock: Clock | None
    until: datetime | timedelta | None
    middleware: tuple[Middleware, ...]
    is_raising: bool
    limit: int


@overload
def run_until_empty(
    handler: "App[Created]",
    *,
    queue: None = None,
    clock: Clock | None = None,
    until: datetime | timedelta | None = None,
    errors: Literal["raise", "keep"] = "raise",
    middleware: Sequence[Middleware] = (),
    limit: int = 10_000,
) -> list[WorkedAttempt]: ...
@overload
def run_until_empty(
    handler: "App[Coroutine[Any, Any, Created]]",
    *,
    queue: None = None,
    clock: Clock | None = None,
    until: datetime | timedelta | None = None,
    errors: Literal["raise", "keep"] = "raise",
    middleware: Sequence[Middleware] = (),
    limit: int = 10_000,
) -> Coroutine[Any, Any, list[WorkedAttempt]]: ...
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
) -> list[WorkedAttempt]: ...
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
) -> Coroutine[Any, Any, list[WorkedAttempt]]: ...
def run_until_empty(
    handler: Any,
    *,
    queue: Queue | AsyncQueue | None = None,
    clock: Clock | None = None,
    until: datetime | timedelta | None = None,
    errors: Literal["raise", "keep"] = "raise",
    middleware: Sequence[Middleware] = (),
    limit: int = 10_000,
) -> list[WorkedAttempt] | Coroutine[Any, Any, list[WorkedAttempt]]:
    """Work all messages that are due, one at a time, and return the attempts; awaited on an AsyncQueue.

    `handler` is what a Worker takes; of an App, `queue` may be absent. With a `clock`, crons tick, and with
    `until` time leaps from one due message to the next, up to there. What a handler raises is raised here,
    once its attempt has ended as it would in a worker; with `errors="keep"` it is only noted.
    """
    if queue is None:
        queue = getattr(handler, "queue", None)
    if not isinstance(queue, Queue | AsyncQueue):
        raise invalid("queue", queue, "a Queue or an AsyncQueue, absent only for an App, which has one")
    if errors not in ("raise", "keep"):
        raise invalid("errors", errors, '"raise" or "keep"')
    if until is not None and clock is None:
        raise InvalidArgument("clock must be given with until: without one, time cannot be made to pass")
    if isinstance(until, datetime):
        argument.epoch_ms("until", until)
    elif until is not None:
        argument.seconds("until", until)
    plan = Plan(
        handler=handler,
        clients=Clients.of(queue),
        clock=clock,
        until=until,
        middleware=tuple(middleware),
        is_raising=errors == "raise",
        limit=argument.whole("limit", limit, 1, argument.MAX_INTEGER),
    )
    return _run(plan) if isinstance(queue, Queue) else _run_here(plan)


def _run(plan: Plan) -> list[WorkedAttempt]:
    """Async handlers run on a loop in this thread, plain ones in this thread while that loop stands still."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise InvalidArgument("queue must be an AsyncQueue where an event loop is running: await this call")
    attempts: list[WorkedAttempt] = []
    with asyncio.Runner() as runner:
        jobs = _worked(plan, attempts)
        try:
            while job := runner.run(_next(jobs)):
                job.run()
        finally:
            runner.run(_closed(jobs))
    return attempts


async def _run_here(plan: Plan) -> list[WorkedAttempt]:
    """Async handlers run on this loop, plain ones in a thread, as in a worker."""
    attempts: list[WorkedAttempt] = []
    async with aclosing(_worked(plan, attempts)) as jobs:
        async for job in jobs:
            await job.run_in_thread()
    return attempts


async def _next(jobs: AsyncGenerator[Job, None]) -> Job | None:
    return await anext(jobs, None)


async def _closed(jobs: AsyncGenerator[Job, None]) -> None:
    await jobs.aclose()


async def _worked(plan: Plan, attempts: list[WorkedAttempt]) -> AsyncGenerator[Job, None]:
    """The loop; what blocks is yielded."""
    queue, blocking_queue = plan.clients.queue(), plan.clients.blocking_queue()
    try:
        async with bench(queue, blocking_queue, plan.handler, plan.middleware) as one:
            one.record.attempts = attempts
            time = Standing() if plan.clock is None else await passing(queue, plan.handler, plan.until)
            while True:
                await time.tick()
                batch = await queue.dequeue(one.limit, lease_s=SETTINGS.lease_s, worker=one.record.worker)
                async for job in one.work(batch):
                    yield job
                _raise_failure(plan, one)
                if batch.outcome is DequeueOutcome.BUSY:
                    await asyncio.sleep(BUSY_S)
                elif not batch and not await time.leap():
                    return
    finally:
        if queue is not plan.clients.given:
            await queue.close()
        if blocking_queue is not plan.clients.given:
            blocking_queue.close()


def _raise_failure(plan: Plan, one: Bench) -> None:
    failure, one.record.failure = one.record.failure, None
    if failure is not None and plan.is_raising:
        raise failure
    if len(one.record.attempts) > plan.limit:
        raise AttemptFailed(
            f"the queue is not empty after {plan.limit} attempts: does a handler enqueue its message again?"
        )
