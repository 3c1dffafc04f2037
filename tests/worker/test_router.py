"""Which handlers a worker accepts, and which messages a handler may process."""

import functools
from collections.abc import AsyncIterator, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

import lonnymq
from lonnymq import JSON, App, Handler, InvalidArgument, Queue, Worker
from lonnymq.model.acknowledge import BURY
from lonnymq.worker.child_process import create_worker
from lonnymq.worker.router import Router
from lonnymq.worker.verdict import Judge, Verdict

app = App(Queue("dbname=nobody"))


@app.task()
def transcode(video: int) -> None:
    raise AssertionError("called by a worker")


@app.task()
def sweep() -> None:
    raise AssertionError("called by a worker")


def two(first: Any, second: Any) -> None: ...
def none() -> None: ...
def keyword(message: Any, *, queue: Any) -> None: ...
async def two_async(first: Any, second: Any) -> None: ...


def generate(message: Any) -> Iterator[int]:
    yield 1


async def generate_async(message: Any) -> AsyncIterator[int]:
    yield 1


class Route:
    def route(self, message: Any) -> Any: ...


MODULE = ModuleType("routes")
MODULE.route = lambda message: None  # type: ignore[attr-defined]

WRONG: list[tuple[Any, str]] = [
    (transcode, "'transcode' is a task, which takes its own arguments; pass its app instead"),
    (functools.partial(transcode), "'transcode' is a task"),
    (sweep, "'sweep' is a task"),
    (transcode.enqueue, "'transcode' is a task"),
    (functools.partial(transcode.message), "'transcode' is a task"),
    (transcode.options(delay=5).enqueue, "'transcode' is a task"),
    (transcode.options(delay=5), "a function that takes a message, a Handler, or an App"),
    (two, r"takes one argument, the message; this one takes \(first: Any, second: Any\)"),
    (two_async, "takes one argument, the message"),
    (none, r"takes one argument, the message; this one takes \(\)"),
    (keyword, "takes one argument, the message"),
    (functools.partial(two, 1, 2), "takes one argument, the message"),
    (generate, "not a generator"),
    (generate_async, "not a generator"),
    (Route, "a function that takes a message"),
    (App, "a function that takes a message"),
    (Handler, "a function that takes a message"),
    (app.queue, "a function that takes a message, a Handler, or an App"),
    (MODULE, "a function that takes a message, a Handler, or an App"),
    (lonnymq, "a function that takes a message, a Handler, or an App"),
    ("shop:app", "a function that takes a message, a Handler, or an App"),
    (None, "a function that takes a message, a Handler, or an App"),
]


@pytest.mark.parametrize(("handler", "expected_error"), WRONG, ids=range(len(WRONG)))
def test_a_handler_that_would_not_process_messages_is_refused(handler: Any, expected_error: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"^handler must be .*{expected_error}"):
        Worker("dbname=nobody", handler)
    if callable(handler):
        with pytest.raises(InvalidArgument, match=r"^call must be "):
            Handler(call=handler)


class Callee:
    def __call__(self, message: Any) -> None: ...
    def method(self, message: Any, more: int = 1) -> None: ...


RIGHT: list[Any] = [
    *(print, Callee(), Callee().method, functools.partial(two, 1), Route(), app, MagicMock()),
    *(lambda message: None, lambda *messages: None, lambda message, more=1: None, Handler(call=print)),
]


@pytest.mark.parametrize("handler", RIGHT, ids=range(len(RIGHT)))
def test_anything_that_can_be_called_with_a_message_is_a_handler(handler: Any) -> None:
    assert Worker("dbname=nobody", handler).handler is handler


def test_a_supervisor_refuses_a_task_as_its_worker() -> None:
    with pytest.raises(InvalidArgument, match=r"worker must be a Worker.*: 'sweep' is a task"):
        create_worker(f"{__name__}:sweep")


def admit(message_limit: int | None, handler_limit: int | None, **fields: Any) -> Handler | Verdict:
    handler = Handler(call=print, max_attempts=handler_limit)
    message = SimpleNamespace(attempt=1, max_attempts=message_limit, **fields)
    return Router(handler, Judge(JSON)).admit(message)


LOST = Verdict(BURY, error="its only attempt was lost with its worker")


@pytest.mark.parametrize(("message_limit", "handler_limit"), [(None, 1), (1, None), (1, 1), (5, 1)])
def test_a_message_with_one_attempt_is_not_repeated_after_a_lost_process(
    message_limit: int | None, handler_limit: int | None
) -> None:
    assert admit(message_limit, handler_limit, suspicion=1) == LOST
    assert isinstance(admit(message_limit, handler_limit, suspicion=0), Handler)
    assert isinstance(admit(message_limit, handler_limit), Handler)


@pytest.mark.parametrize(("message_limit", "handler_limit"), [(None, None), (2, None), (None, 2)])
def test_a_message_with_several_attempts_is_repeated_after_a_lost_process(
    message_limit: int | None, handler_limit: int | None
) -> None:
    assert isinstance(admit(message_limit, handler_limit, suspicion=3), Handler)
