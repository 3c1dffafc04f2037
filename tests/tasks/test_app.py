"""Apps and tasks, from the declaration to the attempt in a real worker."""

import asyncio
import functools
import gc
import os
import pickle
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest

import lonnymq
from lonnymq import (
    App,
    AsyncQueue,
    CatchUp,
    Created,
    CreateOutcome,
    InvalidArgument,
    Queue,
    Retry,
    WrongClient,
    chain,
    group,
)
from tests.conftest import Connect
from tests.forked import ForkedProgram
from tests.tasks import shop
from tests.tasks.test_ticking import record_keys, recorded

ROOT = Path(__file__).resolve().parents[2]
ORDER = UUID("12345678-1234-5678-1234-567812345678")
Until = Callable[[], bool]


def work(app: App[Any], until: Until) -> None:
    """Run the app's worker until a condition holds."""

    async def serve() -> None:
        worker = app.worker(concurrency=4)
        serving = asyncio.create_task(worker.serve())
        deadline = time.monotonic() + 60
        while not await asyncio.to_thread(until):
            assert not serving.done(), serving.exception()
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
        worker.stop()
        await serving
        if isinstance(app.queue, AsyncQueue):
            await app.queue.close()

    asyncio.run(serve())


def is_empty(queue: Queue) -> Until:
    return lambda: (status := queue.status()).waiting + status.leased == 0


def test_a_worker_runs_a_task_with_its_arguments(queue: Queue) -> None:
    app = App(queue)
    seen: list[Any] = []

    @app.task()
    def add(a: int, /, when: datetime, *more: Decimal, note: str | None = None) -> None:
        seen.append((a, when, more, note, lonnymq.current_message().channel))

    when = datetime(2026, 1, 2, tzinfo=UTC)
    created = add.enqueue("acme", 1, when, Decimal("1.5"), note="x")
    assert created.outcome is CreateOutcome.CREATED
    work(app, is_empty(queue))
    assert seen == [(1, when, (Decimal("1.5"),), "x", "acme")]
    assert queue.dead().list() == []


@pytest.mark.parametrize("kind", [str, Queue, AsyncQueue])
def test_blocking_and_async_code_enqueue_the_same_task(queue: Queue, dsn: str, kind: Any) -> None:
    app: App[Any] = App(kind(dsn))
    seen: list[int] = []

    @app.task
    async def count(n: int) -> None:
        seen.append(n)
        if n:
            await count.enqueue_async("acme", n - 1)

    @app.task
    def count_in_thread(n: int) -> None:
        seen.append(n)
        if n:
            count_in_thread.enqueue("acme", n - 1)

    async def enqueue() -> Created:
        try:
            return await count.enqueue_async("acme", 2)
        finally:
            await app.clients.close_async()

    assert count_in_thread.enqueue("acme", 3).outcome is CreateOutcome.CREATED
    assert asyncio.run(enqueue()).outcome is CreateOutcome.CREATED
    app.use(kind(dsn) if kind is not str else Queue(dsn))  # the client of a loop that has ended is closed
    work(app, is_empty(queue))
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3]
    app.clients.close()


@pytest.mark.parametrize("kind", [str, Queue, AsyncQueue])
def test_the_wrong_enqueue_raises_at_once_and_creates_nothing(queue: Queue, dsn: str, kind: Any) -> None:
    app: App[Any] = App(kind(dsn))

    @app.task
    def plain(n: int) -> None: ...

    async def in_async_code() -> None:
        with pytest.raises(WrongClient, match=r"await plain\.enqueue_async"):
            plain.enqueue("acme", 1)

    with pytest.raises(WrongClient, match=r"call plain\.enqueue"):
        plain.enqueue_async("acme", 1)  # type: ignore[unused-coroutine]
    asyncio.run(in_async_code())
    assert queue.status().waiting == 0


def test_an_async_pool_serves_no_blocking_code(dsn: str) -> None:
    async def connect() -> Any:
        return await psycopg.AsyncConnection.connect(dsn, autocommit=True)

    app = App(AsyncQueue(connect))

    @app.task
    def plain(n: int) -> None: ...

    with pytest.raises(WrongClient, match="blocking code cannot use"):
        plain.enqueue("acme", 1)


def test_the_connections_of_ended_event_loops_are_closed(queue: Queue, dsn: str) -> None:
    app = App(dsn)

    @app.task
    def plain(n: int) -> None: ...

    async def enqueue() -> Created:
        return await plain.enqueue_async("acme", 1)

    def sessions() -> int:
        with psycopg.connect(dsn) as one:
            row = one.execute(
                "select count(*) from pg_stat_activity where datname = current_database()"
            ).fetchone()
        return int(row[0]) if row else 0

    before = sessions()
    for _ in range(5):
        assert asyncio.run(enqueue()).outcome is CreateOutcome.CREATED
    gc.collect()
    deadline = time.monotonic() + 10
    while sessions() > before + 1:
        assert time.monotonic() < deadline
    assert queue.status().waiting == 5


def test_calling_a_task_calls_its_function(queue: Queue) -> None:
    app = App(queue)

    @app.task(name="other name")
    def double(n: int) -> int:
        """Return twice the number."""
        return 2 * n

    assert double(4) == 8
    assert (double.name, double.__doc__) == ("other name", "Return twice the number.")
    assert app.tasks == {"other name": double}
    assert queue.status().waiting == 0


def test_options_apply_to_the_message_of_a_task(queue: Queue, dsn: str) -> None:
    app = App(queue)

    @app.task(max_attempts=3)
    def work_(n: int, key: str = "") -> None: ...

    assert work_.options(key="k").enqueue("acme", 1).outcome is CreateOutcome.CREATED
    assert work_.options(key="k").enqueue("acme", 2).outcome is CreateOutcome.DUPLICATE
    work_.options(priority=5, max_attempts=7).enqueue("acme", 3, key="an argument")
    work_.options(delay=timedelta(hours=1)).enqueue("acme", 4)
    work_.options(at=datetime.now(UTC) + timedelta(hours=1)).enqueue("acme", 5)
    with psycopg.connect(dsn) as connection:
        work_.options(connection=connection).enqueue("acme", 6)
        connection.rollback()
    messages = queue.dequeue(10)
    assert [message.payload["arguments"] for message in messages] == [
        {"n": 3, "key": "an argument"},
        {"n": 1},
    ]
    assert [message.max_attempts for message in messages] == [7, 3]


def test_many_messages_of_a_task_are_enqueued_in_one_call(queue: Queue) -> None:
    app = App(queue)

    @app.task(max_attempts=3)
    def work_(n: int) -> None: ...

    queue.enqueue_many(work_.options(key=str(n)).message("acme", n) for n in range(3))
    queue.copy_in([work_.message("acme", 3)])
    messages = queue.dequeue(10)
    assert [message.payload for message in messages] == [
        {"task": "work_", "arguments": {"n": n}} for n in range(4)
    ]
    assert {message.max_attempts for message in messages} == {3}


def test_an_option_of_a_call_is_refused_for_a_message(queue: Queue) -> None:
    app = App(queue)

    @app.task
    def work_(n: int) -> None: ...

    for given in (work_.options(connection=cast("Any", object())), work_.options(raise_if_dropped=True)):
        with pytest.raises(InvalidArgument, match="is no option of a message: pass it to the call"):
            given.message("acme", 1)
    member = chain(work_, 1).options(connection=cast("Any", object()))
    with pytest.raises(InvalidArgument, match="connection is no option of a message"):
        group([member]).then(app.task(name="last")(lambda: None)).enqueue("acme")


def test_wrong_arguments_are_refused_when_a_task_is_enqueued(queue: Queue) -> None:
    app = App(queue)

    @app.task()
    def work_(n: int) -> None: ...

    wrong: Any = work_
    for arguments, options in [((), {}), (("1",), {}), ((1, 2), {}), ((1,), {"m": 1})]:
        with pytest.raises(InvalidArgument, match=r"^work_"):
            wrong.enqueue("acme", *arguments, **options)
    with pytest.raises(
        InvalidArgument, match=r"before the arguments: work_\.options\(delay=5, key='k'\)\.enqueue\(\.\.\.\)$"
    ):
        wrong.enqueue("acme", 1, delay=5, key="k")
    with pytest.raises(InvalidArgument, match=r"work_\.options\(connection=\.\.\.\)\.enqueue"):
        wrong.enqueue("acme", 1, connection=queue)
    assert queue.status().waiting == 0


def test_a_parameter_can_have_the_name_of_an_option(queue: Queue) -> None:
    app = App(queue)

    @app.task()
    def wait_(*, delay: int, **others: int) -> None: ...

    wrong: Any = wait_
    wait_.enqueue("acme", delay=5, key=1)
    with pytest.raises(InvalidArgument) as refused:
        wrong.enqueue("acme", delay="x", key=1)
    assert "options" not in str(refused.value)
    [message] = queue.dequeue()
    assert message.payload["arguments"] == {"delay": 5, "others": {"key": 1}}


WRONG_MESSAGES: list[tuple[Any, str]] = [
    (b"\xff", "the codec cannot decode"),
    ([1], "the message does not name a task: its payload must be"),
    ({"arguments": {}}, "the message does not name a task"),
    ({"task": ["work_"]}, "the message does not name a task"),
    ({"task": "gone", "arguments": {}}, "unknown task 'gone': the tasks of this worker are 'work_'"),
    ({"task": "work_"}, "work_(n: int): missing argument 'n'"),
    ({"task": "work_", "arguments": [1]}, "work_: arguments must be an object"),
    ({"task": "work_", "arguments": {"n": 1, "m": 2}}, "work_(n: int): unknown argument 'm'"),
    ({"task": "work_", "arguments": {"n": "x"}}, "work_: n must be an int, got 'x'"),
]


def test_a_message_that_no_task_can_process_is_buried_with_the_reason(queue: Queue) -> None:
    app = App(queue)

    @app.task()
    def work_(n: int) -> None: ...

    reasons = {queue.enqueue("acme", payload).id: reason for payload, reason in WRONG_MESSAGES}
    work(app, is_empty(queue))
    letters = queue.dead().list()
    assert [(letter.id, letter.attempts) for letter in letters] == [(id_, 1) for id_ in reasons]
    for letter in letters:
        assert reasons[letter.id] in (letter.error or "")


def test_the_limit_of_a_task_applies_to_messages_without_their_own(queue: Queue) -> None:
    app = App(queue)

    @app.task(max_attempts=2, retry=Retry(first_s=0.0))
    def fail() -> None:
        raise RuntimeError("always")

    payload = {"task": "fail", "arguments": {}}
    ids = [
        queue.enqueue("acme", payload).id,
        fail.enqueue("acme").id,
        fail.options(max_attempts=4).enqueue("acme").id,
        queue.enqueue("acme", payload, max_attempts=3).id,
    ]
    work(app, is_empty(queue))
    letters = queue.dead().list()
    assert [(letter.id, letter.attempts) for letter in letters] == list(zip(ids, [2, 2, 4, 3], strict=True))
    assert all("RuntimeError: always" in (letter.error or "") for letter in letters)


def test_a_task_without_a_limit_is_tried_25_times(queue: Queue) -> None:
    """The limit of its channel takes precedence, and its own over both; None means unlimited."""
    app = App(queue)

    def fail() -> None:
        raise RuntimeError("always")

    def declare(name: str, **options: Any) -> Any:
        return app.task(name=name, retry=Retry(first_s=0.0), **options)(fail)

    plain, own, endless = (
        declare("plain"),
        declare("own", max_attempts=4),
        declare("endless", max_attempts=None),
    )
    queue.channel("strict").set(max_attempts=2)
    ids = [
        *(plain.enqueue("acme").id, queue.enqueue("acme", {"task": "plain"}).id),
        *(plain.enqueue("strict").id, own.enqueue("strict").id, endless.enqueue("strict").id),
    ]
    work(app, is_empty(queue))
    assert {letter.id: letter.attempts for letter in queue.dead().list()} == dict(
        zip(ids, [25, 25, 2, 4, 2], strict=True)
    )
    endless.enqueue("acme")
    [message] = queue.dequeue(1)
    assert message.max_attempts is None
    loose: Any = message
    assert app.route(loose).max_attempts is None


def test_25_attempts_take_about_half_a_day() -> None:
    """This is what the documentation says."""
    for share, hours in ((0.0, 13.1), (0.999, 10.5)):
        random = Random()
        random.random = lambda share=share: share  # type: ignore[method-assign,misc]
        delays_s = [Retry().delay_s(attempt, random) for attempt in range(1, 25)]
        assert round(sum(delays_s) / 3600, 1) == hours


def hide_async(function: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """A decorator that hides that a function is async."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Awaitable[None]:
        return function(*arguments, **options)

    return call


def test_an_async_function_in_a_plain_decorator_is_awaited(queue: Queue) -> None:
    app = App(queue)
    seen: list[int] = []

    @app.task()
    @hide_async
    async def work_(n: int) -> None:
        await asyncio.sleep(0)
        seen.append(n)

    work_.enqueue("acme", 7)
    work(app, is_empty(queue))
    assert seen == [7]


class Sealed:
    """A custom codec."""

    def encode(self, payload: Any) -> bytes:
        return pickle.dumps(payload)

    def decode(self, content: bytes) -> Any:
        return pickle.loads(content)


def test_arguments_pass_through_a_custom_codec(dsn: str) -> None:
    with Queue(dsn, codec=Sealed()) as queue:
        app = App(queue)
        seen: list[UUID] = []

        @app.task()
        def work_(order: UUID) -> None:
            seen.append(order)

        work_.enqueue("acme", ORDER)
        work(app, is_empty(queue))
        assert seen == [ORDER]


def test_a_cron_accepts_a_task_or_turns_a_function_into_one() -> None:
    app = App(Queue("dbname=nobody"))

    @app.cron("0 3 * * *", channel="reports", timezone="Europe/Berlin")
    def nightly() -> None: ...

    @app.cron("0 0 1 * *", channel="acme", name="monthly", arguments={"days": 30}, catch_up="all")
    @app.cron("0 0 * * MON", channel="acme", name="weekly", arguments={"days": 7})
    @app.task(name="report", max_attempts=5)
    def report(days: int) -> None: ...

    assert set(app.tasks) == {"nightly", "report"}
    found = {cron.name: cron for cron in app.crons}
    assert list(found) == ["nightly", "weekly", "monthly"]
    assert found["nightly"].payload == {"task": "nightly", "arguments": {}}
    assert (found["nightly"].timezone, found["nightly"].catch_up) == ("Europe/Berlin", CatchUp.LATEST)
    assert found["monthly"].payload == {"task": "report", "arguments": {"days": 30}}
    assert (found["monthly"].max_attempts, found["monthly"].catch_up) == (5, CatchUp.ALL)


def test_a_wrong_declaration_is_refused_by_its_argument() -> None:
    app = App(Queue("dbname=nobody"))

    @app.cron("0 3 * * *", channel="a")
    def known(n: int = 1) -> None: ...

    def generate() -> Iterator[int]:
        yield 1

    loose: Any = app
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: App(5), "queue must be a connection string, a lonnymq.Queue or"),  # type: ignore[call-overload]
        (
            lambda: app.task(name="known")(lambda: None),
            "name must be a name that no other task of this app has",
        ),
        (lambda: app.task(max_attempts=0)(lambda: None), "max_attempts must be"),
        (lambda: app.task(timeout=-1)(lambda: None), "timeout must be"),
        (lambda: loose.task(retry=3)(lambda: None), "retry must be a lonnymq.Retry"),
        (lambda: loose.task()(5), "task must be a function"),
        (lambda: app.task()(generate), "a function that does its work when it is called, not a generator"),
        (lambda: app.task()(known), "task must be a function: @app.task goes directly above its def"),
        (lambda: app.cron("0 3", channel="a"), "expression must be"),
        (lambda: app.cron("0 3 * * *", channel="a", timezone="x"), "timezone must be"),
        (lambda: app.cron("0 3 * * *", channel="")(known), "channel must be"),
        (lambda: app.cron("0 3 * * *", channel="a")(known), "name must be a name that no other cron"),
        (
            lambda: app.cron("* * * * *", channel="a", name="b", catch_up="x")(known),
            "catch_up must be one of",
        ),
        (lambda: app.cron("* * * * *", channel="a", name="c", arguments={"m": 1})(known), "known"),
        (lambda: app.worker(threads=3), "settings must be fields of WorkerSettings"),
        (lambda: app.worker(concurrency=0), "concurrency must be"),
    ]
    for declare, expected_error in wrong:
        with pytest.raises(InvalidArgument, match=expected_error):
            declare()
    assert [cron.name for cron in app.crons] == ["known"]


def test_an_app_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(shop.app)) is shop.app
    with pytest.raises(TypeError, match="assign it to a variable of a module"):
        pickle.dumps(App(Queue("dbname=nobody")))


@pytest.fixture
def shop_workers(dsn: str, tmp_path: Path) -> Iterator[Callable[[int], ForkedProgram]]:
    """A function that starts a worker program with this many processes."""
    started: list[ForkedProgram] = []
    notes = {"SHOP_DSN": dsn, "SHOP_NOTES": str(tmp_path / "notes")}

    def start(processes: int) -> ForkedProgram:
        environment = {**os.environ, **notes}
        started.append(ForkedProgram("tests.tasks.shop", str(processes), cwd=ROOT, env=environment))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()


def test_several_worker_programs_create_each_tick_once(
    queue: Queue, connect: Connect, tmp_path: Path, shop_workers: Callable[[int], ForkedProgram]
) -> None:
    """Three programs by the database's clock: one has two processes, and one is killed."""
    notes = tmp_path / "notes"
    notes.touch()
    record_keys(connect, is_key_removed=False)
    sender = App(queue)
    for task in (shop.charge, shop.break_, shop.hang):
        sender.task(name=task.name, max_attempts=task.max_attempts)(task.function)
    sender.tasks["charge"].enqueue("acme", ORDER, Decimal("9.90"), at=None)
    sender.tasks["break_"].enqueue("acme")
    sender.tasks["hang"].enqueue("acme")
    programs = [shop_workers(2), shop_workers(1), shop_workers(1)]

    def ticks() -> list[str]:
        return [line.split()[1] for line in notes.read_text().splitlines() if line.startswith("tick")]

    def wait_for(condition: Until) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline, notes.read_text()
            time.sleep(0.05)

    wait_for(lambda: len(ticks()) >= 2)
    programs[2].kill()
    seen = len(ticks())
    wait_for(lambda: len(ticks()) >= seen + 2 and len(queue.dead().list()) == 2)
    for program in programs[:2]:
        program.send_signal(signal.SIGTERM)
    assert [program.wait(60) for program in programs[:2]] == [0, 0]

    lines = notes.read_text().splitlines()
    assert f"charge {ORDER} Decimal('9.90') None acme 2" in lines
    assert f"receipt {ORDER}" in lines
    enqueued = [datetime.fromisoformat(key.removeprefix("tock:")) for key in recorded(connect)]
    assert enqueued == [enqueued[0] + n * timedelta(seconds=1) for n in range(len(enqueued))]
    assert {datetime.fromisoformat(tick) for tick in ticks()} <= set(enqueued)
    errors = {(letter.attempts, (letter.error or "").splitlines()[-1]) for letter in queue.dead().list()}
    assert (2, "RuntimeError: always") in errors
    assert any("took longer than 0.05 s" in error for _, error in errors)
