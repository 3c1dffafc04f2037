"""Malicious messages are buried with a reason of bounded length, and others are processed."""

import inspect
import json
import logging
import threading
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar

import pydantic
import pytest

from lonnymq import App, Bury, Defer, InvalidArgument, Queue
from lonnymq.calls.argument import MAX_ERROR_CHARACTERS
from lonnymq.tasks.arguments import Arguments
from tests.tasks.test_app import is_empty, work
from tests.tasks.test_unions import Left, Right, chain

HUGE = "\x1b\0\u202eé" * 250_000


class Size(Enum):
    SMALL = "small"


class Model(pydantic.BaseModel):
    numbers: list[int] = []


class Name(pydantic.RootModel[str]):
    pass


@dataclass
class Line:
    count: int = 1


def payload(**arguments: Any) -> bytes:
    return json.dumps({"task": "work_", "arguments": arguments}).encode()


# Contents that must not stop a worker, and a part of the reason.
HOSTILE: dict[str, tuple[bytes, str]] = {
    "a huge task name": (json.dumps({"task": HUGE}).encode(), "unknown task '\\x1b"),
    "a huge argument name": (payload(**{HUGE: 1}), "unknown argument '\\x1b"),
    "many argument names": (payload(**{str(n): 1 for n in range(200_000)}), "and 199995 more"),
    "a huge number for a text": (payload(text=10**4000), "text must be a str"),
    "a number of too many digits": (
        b'{"task": "work_", "arguments": {"n": ' + b"9" * 10_000 + b"}}",
        "digits",
    ),
    "a huge text for a number": (payload(n=HUGE), "n must be an int"),
    "a huge text for a time": (payload(at=HUGE), "at must be a datetime"),
    "a huge text for a decimal": (payload(price=HUGE), "price must be a Decimal"),
    "a huge text for a member": (payload(size=HUGE), "size must be the value of a member of Size"),
    "a huge key": (payload(prices={HUGE: "x"}), "prices.\\x1b\\x00\\u202e"),
    "a huge field": (payload(line={HUGE: 1}), "an instance of Line, which has no '\\x1b"),
    "a huge field of a model": (payload(model={"numbers": HUGE}), "an instance of Model"),
    "a million errors": (payload(model={"numbers": ["x"] * 100_000}), "100000 errors"),
    "not a number": (b'{"task": "work_", "arguments": {"share": NaN}}', "share must be a finite float"),
    "infinity": (b'{"task": "work_", "arguments": {"share": 1e999}}', "share must be a finite float"),
    "nested too deep to decode": (b'{"task": ' + b"[" * 200_000, "the codec cannot decode"),
    "nested too deep to read": (payload(tree=chain(300, lambda one, _: {"child": one}, None)), "too deep"),
    "a lone surrogate": (b'{"task": "\\ud800\\u0000"}', "unknown task '\\ud800\\x00'"),
    "a lone surrogate as a name": (payload(**{"\ud800\0": 1}), "unknown argument '\\ud800\\x00'"),
    "a deep union": (
        payload(tree=chain(60, lambda one, _: {"child": one}, "x")),
        "tree must be",
    ),
    "a list in a set": (payload(marks=[1, [1]]), "marks[1] must be hashable, to be in a set, got [1]"),
    "an object in a frozen set": (payload(fixed=[{}]), "fixed[0] must be hashable, to be in a frozenset"),
    "a record in a set": (payload(lines=[{}]), "lines[0] must be hashable, to be in a set"),
    "a model as a key": (payload(named={"a": 1}), "named, key 'a', must be hashable"),
    "a list in a large set": (payload(marks=[*range(50_000), [1]]), "marks[50000] must be hashable"),
}


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
def test_no_message_stops_a_worker(queue: Queue, caplog: pytest.LogCaptureFixture, is_async: bool) -> None:
    app = App(queue)
    done: list[int] = []

    def work_(
        n: int = 0,
        *,
        text: str = "",
        at: datetime | None = None,
        price: Decimal = Decimal(0),
        size: Size = Size.SMALL,
        prices: dict[str, int] | None = None,
        line: Line | None = None,
        model: Model | None = None,
        share: float = 0.0,
        tree: Left | Right | None = None,
        marks: set[Any] | None = None,
        fixed: frozenset[Any] | None = None,
        lines: set[Line] | None = None,
        named: dict[Name, int] | None = None,
    ) -> None:
        done.append(n)

    async def work_async(*arguments: Any, **options: Any) -> None:
        work_(*arguments, **options)

    work_async.__signature__ = inspect.signature(work_)  # type: ignore[attr-defined]
    work_async.__annotations__ = work_.__annotations__
    function: Any = work_async if is_async else work_
    app.task(name="work_")(function)
    reasons = {}
    for content, reason in HOSTILE.values():
        reasons[queue.enqueue("acme", content).id] = reason
    queue.enqueue("acme", payload(n=7))
    with caplog.at_level(logging.DEBUG, "lonnymq"):
        work(app, is_empty(queue))
    assert done == [7]
    letters = queue.dead().list()
    assert [(letter.id, letter.attempts) for letter in letters] == [(id_, 1) for id_ in reasons]
    for letter in letters:
        assert letter.error is not None
        assert reasons[letter.id] in letter.error
        assert len(letter.error) <= 2_000
    lines = [record.getMessage() for record in caplog.records if record.name == "lonnymq.worker"]
    assert len(lines) > len(HOSTILE)
    for text in lines:
        assert len(text) < 1_000
        assert not {unicodedata.category(one) for one in text} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@dataclass
class Trace:
    """Records in which thread it was created."""

    n: int
    created_in: ClassVar[set[int]] = set()

    def __post_init__(self) -> None:
        self.created_in.add(threading.get_ident())
        if self.n < 0:
            raise StopIteration


def test_large_arguments_are_not_converted_on_the_event_loop(queue: Queue) -> None:
    """Otherwise one message would delay the heartbeats of all others."""
    app = App(queue)
    seen: list[tuple[int, set[int]]] = []

    @app.task(max_attempts=1)
    async def trace(traces: list[Trace], note: str = "") -> None:
        seen.append((threading.get_ident(), set(Trace.created_in)))

    Trace.created_in.clear()
    queue.enqueue("acme", {"task": "trace", "arguments": {"traces": [{"n": 1}], "note": "x" * 200_000}})
    # A future cannot hold a StopIteration: the attempt must fail, and not hang.
    queue.enqueue("acme", {"task": "trace", "arguments": {"traces": [{"n": -1}], "note": "x" * 200_000}})
    work(app, is_empty(queue))
    [(loop, created_in)] = seen
    assert created_in
    assert loop not in created_in
    errors = [letter.error or "" for letter in queue.dead().list()]
    assert len(errors) == 1
    assert all("StopIteration" in error for error in errors)


def test_a_codec_value_that_json_cannot_represent_is_refused() -> None:
    def of_model(model: Model) -> None: ...

    with pytest.raises(InvalidArgument, match="of_model: model must be an instance of Model"):
        Arguments(of_model, "of_model").from_json({"model": {"numbers": [b"1"]}})


def raising(error: Callable[[], BaseException]) -> Callable[[], None]:
    def fail() -> None:
        raise error()

    return fail


ERRORS: dict[str, Callable[[], BaseException]] = {
    "an error": lambda: RuntimeError(HUGE),
    "a lookup": lambda: KeyError(HUGE),
    "a burial": lambda: Bury(HUGE),
    "a deferral": lambda: Defer(error=HUGE),
    "a chain": lambda: _chained(RuntimeError(HUGE), ValueError(HUGE)),
    "a group": lambda: ExceptionGroup(HUGE, [ValueError(HUGE)] * 50),
    "a surrogate": lambda: RuntimeError("\ud800\0"),
    "no text": lambda: RuntimeError("\n\n"),
}


def _chained(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def test_any_error_text_is_kept_with_the_message(queue: Queue) -> None:
    app = App(queue)
    for name, error in ERRORS.items():
        app.task(name=name, max_attempts=1)(raising(error)).enqueue("acme")
    work(app, is_empty(queue))
    letters = queue.dead().list()
    assert len(letters) == len(ERRORS)
    assert all(0 < len(letter.error or "") <= MAX_ERROR_CHARACTERS for letter in letters)


def test_an_error_passed_to_the_client_is_shortened_too(queue: Queue) -> None:
    for _ in range(2):
        queue.enqueue("acme", 1)
    first, second = queue.dequeue(2)
    queue.bury([first], error=HUGE)
    second.defer(error=HUGE)
    [letter] = queue.dead().list()
    [waiting] = queue.peek("acme")
    for error in (letter.error, waiting.error):
        assert error is not None
        assert 0 < len(error) <= MAX_ERROR_CHARACTERS


def test_the_error_about_a_huge_argument_is_short(queue: Queue) -> None:
    app = App(queue)

    @app.task()
    def work_(n: int) -> None: ...

    wrong: Any = work_
    for arguments in ({"n": HUGE}, {HUGE: 1}, {"n": {HUGE: HUGE}}, {"n": [HUGE] * 1000}):
        with pytest.raises(InvalidArgument) as refused:
            wrong.enqueue("acme", **arguments)
        assert len(str(refused.value)) < 1_000
