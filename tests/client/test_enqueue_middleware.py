"""Middleware of a queue runs around each call that enqueues, in both clients."""

import asyncio
import contextlib
import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

import lonnymq
from lonnymq import Created, CreateOutcome, InvalidArgument, LonnyError, NewMessage, Queue
from lonnymq.client.enqueueing import Enclosing
from lonnymq.telemetry.tracing import Tracing
from lonnymq.worker.client_factory import ClientFactory
from tests.client.conftest import OpenQueue


def add_region(messages: Iterable[NewMessage]) -> Enclosing:
    yield (replace(one, headers={**(one.headers or {}), "region": "eu"}) for one in messages)


class Recorder:
    """Keeps what it was given, what it was sent, and what was raised."""

    def __init__(self, name: str = "", log: list[Any] | None = None) -> None:
        self.name = name
        self.log: list[Any] = [] if log is None else log

    def __call__(self, messages: Iterable[NewMessage]) -> Enclosing:
        given = list(messages)
        self.log.append((self.name, [one.payload for one in given]))
        try:
            self.log.append((self.name, (yield given)))
        except BaseException as error:
            self.log.append((self.name, type(error)))
            raise


def test_middleware_changes_the_messages_of_every_call(open_queue: OpenQueue) -> None:
    queue = open_queue(middleware=[add_region])
    queue.enqueue("a", 1, headers={"x": "1"})
    queue.enqueue_many([NewMessage(channel="a", payload=2), NewMessage(channel="a", payload=3)])
    queue.copy_in(NewMessage(channel="a", payload=n) for n in (4, 5))
    assert [(one.payload, one.headers) for one in queue.dequeue(9)] == [
        (1, {"x": "1", "region": "eu"}),
        *((n, {"region": "eu"}) for n in (2, 3, 4, 5)),
    ]


def test_the_first_middleware_is_the_outermost_and_is_sent_the_result(open_queue: OpenQueue) -> None:
    log: list[Any] = []
    queue = open_queue(middleware=[Recorder("outer", log), Recorder("inner", log)])
    queue.channel("full").set(max_size=0)
    assert queue.enqueue("full", 1).outcome is CreateOutcome.DROPPED
    dropped = [Created(CreateOutcome.DROPPED, None)]
    assert log == [("outer", [1]), ("inner", [1]), ("inner", dropped), ("outer", dropped)]
    log.clear()
    created = queue.enqueue_many([NewMessage(channel="a", payload=n) for n in (1, 2)])
    published = queue.copy_in([NewMessage(channel="a", payload=3)])
    assert [sent for name, sent in log if name == "outer"] == [[1, 2], created, [3], published]


def test_an_error_is_raised_at_the_yield_and_may_be_replaced(open_queue: OpenQueue) -> None:
    def translate(messages: Iterable[NewMessage]) -> Enclosing:
        try:
            yield messages
        except InvalidArgument as error:
            raise KeyError("translated") from error

    def swallow(messages: Iterable[NewMessage]) -> Enclosing:
        with contextlib.suppress(KeyError):
            yield messages

    outer, inner = Recorder(), Recorder()
    queue = open_queue(middleware=[outer, swallow, translate, inner])
    with pytest.raises(KeyError, match="translated"):
        queue.enqueue("", 1)
    assert inner.log[1:] == [("", InvalidArgument)]
    assert outer.log[1:] == [("", KeyError)]
    assert queue.status().waiting == 0


def test_middleware_that_fails_prevents_the_call(open_queue: OpenQueue) -> None:
    def fail(messages: Iterable[NewMessage]) -> Enclosing:
        if messages:
            raise OSError("not today")
        yield messages

    outer = Recorder()
    queue = open_queue(middleware=[outer, fail])
    one = [NewMessage(channel="a", payload=1)]
    calls: dict[str, list[Any]] = {"enqueue": ["a", 1], "enqueue_many": [one], "copy_in": [one]}
    for name, arguments in calls.items():
        with pytest.raises(OSError, match="not today"):
            getattr(queue, name)(*arguments)
    assert [entry for entry in outer.log if entry[1] is OSError] == [("", OSError)] * 3
    assert queue.status().waiting == 0


def test_misbehaving_middleware_is_named(open_queue: OpenQueue) -> None:
    def two(messages: Iterable[NewMessage]) -> Enclosing:
        yield [*messages, NewMessage(channel="a", payload=2)]

    def twice(messages: Iterable[NewMessage]) -> Enclosing:
        yield messages
        yield messages

    def none(messages: Iterable[NewMessage]) -> Enclosing:
        if not messages:
            yield messages

    def plain(messages: Iterable[NewMessage]) -> Any:
        return messages

    for middleware, error in (
        (two, "enqueue middleware yielded 2 messages for 1"),
        (none, "none yielded nothing: enqueue middleware yields the messages"),
        (plain, "plain is not a generator function"),
        (twice, "twice yielded twice: enqueue middleware yields once"),
    ):
        queue = open_queue(middleware=[middleware])
        with pytest.raises(LonnyError, match=error):
            queue.enqueue("a", 1)
    # The message of the last one was created before its middleware was resumed.
    assert queue.status().waiting == 1


async def asynchronous(messages: Iterable[NewMessage]) -> None: ...


@pytest.mark.parametrize("middleware", [5, asynchronous])
def test_something_else_is_refused_at_once(middleware: Any) -> None:
    with pytest.raises(InvalidArgument, match="middleware must be a sequence of generator functions"):
        Queue("postgresql://nobody@127.0.0.1:1/none", middleware=[middleware])


@pytest.mark.parametrize("is_app_given_the_queue", [True, False])
def test_tasks_enqueue_through_the_middleware_of_their_queue(
    open_queue: OpenQueue, dsn: str, is_app_given_the_queue: bool
) -> None:
    app = (
        lonnymq.App(Queue(dsn, middleware=[add_region]))
        if is_app_given_the_queue
        else lonnymq.App(dsn, middleware=[add_region])
    )

    @app.task
    def resize(video: int) -> None: ...

    resize.enqueue("acme", 7)

    async def enqueue() -> None:
        await resize.enqueue_async("acme", 8)
        await app.clients.close_async()

    asyncio.run(enqueue())
    app.queue.close()
    assert [one.headers for one in open_queue().dequeue(2)] == [{"region": "eu"}] * 2


def test_an_app_passes_its_instrumentation_to_the_queue_of_its_connection_string(dsn: str) -> None:
    tracing = Tracing()
    app = lonnymq.App(dsn, middleware=[add_region], instrumentation=tracing)
    assert app.queue.caller.instrumentation is tracing
    for options in ({"middleware": [add_region]}, {"instrumentation": tracing}):
        with pytest.raises(InvalidArgument, match=f"^{next(iter(options))} must be an argument of the queue"):
            lonnymq.App(app.queue, **options)


def test_the_clients_of_worker_processes_have_the_middleware() -> None:
    factory = ClientFactory.of(Queue("postgresql://nobody@127.0.0.1:1/none", middleware=[add_region]))
    copied = pickle.loads(pickle.dumps(replace(factory, given=None)))
    assert copied.async_queue().middleware == (add_region,)
    assert copied.blocking_queue().middleware == (add_region,)
    assert copied.internal_queue(1).middleware == (add_region,)
