"""Chains: one message that goes on with the next step when a task has returned."""

import asyncio
import json
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import lonnymq
from lonnymq import App, Queue, Retry, chain
from lonnymq.testing import run_until_empty
from tests.conftest import Connect
from tests.forked import ForkedProgram
from tests.worker.workers import eventually, finished

HOUR = timedelta(hours=1)
AT_ONCE = Retry(first_s=0, max_s=0)


@dataclass
class Video:
    id: int
    seconds: float


@pytest.fixture
def app(dsn: str) -> Any:
    with lonnymq.Queue(dsn) as queue:
        queue.install()
        yield lonnymq.App(queue)


def test_each_step_takes_the_result_of_the_one_before(app: App[Queue]) -> None:
    noted: list[str] = []

    @app.task
    def find(url: str) -> Video:
        return Video(7, 90.5)

    @app.task
    async def cut(video: Video, to_s: float, parts: int = 1) -> list[Video]:
        return [Video(video.id + n, to_s) for n in range(parts)]

    @app.task
    def note(videos: list[Video], user: str) -> None:
        noted.append(f"{user} has {[video.id for video in videos]}")

    @app.task(keep_result=HOUR)
    def count() -> int:
        return len(noted)

    cutting = chain(find, "url").then(cut, 2.5, parts=2)
    counted = cutting.then(note, user="ann").then(count).enqueue("acme")
    assert counted.outcome is lonnymq.CreateOutcome.CREATED
    with pytest.raises(lonnymq.NotFinished):
        counted.result()
    done = run_until_empty(app)
    assert [(one.handler, one.outcome) for one in done] == [
        ("find", "advanced"),
        ("cut", "advanced"),
        ("note", "advanced"),
        ("count", "completed"),
    ]
    assert {one.message.channel for one in done} == {"acme"}
    assert noted == ["ann has [7, 8]"]
    assert counted.result() == 1
    # A chain can be the beginning of several others.
    found = cutting.options(keep_result=60).enqueue("tiny")
    run_until_empty(app)
    assert found.result() == [Video(7, 2.5), Video(8, 2.5)]


def test_a_chain_is_one_message_with_a_new_uid_for_each_step(app: App[Queue]) -> None:
    uids: list[str] = []

    @app.task(keep_result=HOUR)
    def step() -> None:
        message = lonnymq.current_message()
        uids.append(message.uid)
        assert (message.key, message.attempt, message.headers["region"]) == ("k", 1, "eu")
        again = app.queue.enqueue("acme", None, key="k")
        assert (again.outcome, again.id) == ("duplicate", message.id)

    made = chain(step).then(step).then(step).options(key="k", headers={"region": "eu"}).enqueue("acme")
    run_until_empty(app)
    assert len(set(uids)) == 3
    assert {uid.split("-")[1] for uid in uids} == {str(made.id)}
    assert app.queue.status_of(made.id or 0).status is lonnymq.MessageStatus.COMPLETED


def test_only_the_step_that_failed_is_tried_again(app: App[Queue]) -> None:
    calls: list[tuple[str, int]] = []

    @app.task(retry=AT_ONCE)
    def first() -> int:
        calls.append(("first", lonnymq.current_message().attempt))
        return 5

    @app.task(keep_result=HOUR, retry=AT_ONCE)
    def second(number: int) -> int:
        attempt = lonnymq.current_message().attempt
        calls.append(("second", attempt))
        if attempt < 3:
            raise ValueError(number)
        return number + attempt

    made = chain(first).then(second).enqueue("acme")
    run_until_empty(app, errors="keep")
    assert calls == [("first", 1), ("second", 1), ("second", 2), ("second", 3)]
    assert made.result() == 8


def test_a_buried_step_ends_the_chain_until_it_is_redriven(app: App[Queue]) -> None:
    calls: list[str] = []
    is_broken = True

    def report(notice: lonnymq.Message) -> None:
        calls.append(f"{notice.payload['task']} was buried in {notice.channel}")

    @app.task
    def first() -> int:
        return 5

    @app.task(max_attempts=1, on_buried=report)
    def second(number: int) -> int:
        if is_broken:
            raise OSError("no disk")
        return number + 1

    @app.task(keep_result=HOUR)
    def third(number: int) -> int:
        return number + 1

    made = chain(first).then(second).then(third).enqueue("acme")
    run_until_empty(app, errors="keep")
    assert calls == ["second was buried in acme"]
    with pytest.raises(lonnymq.MessageBuried, match="no disk"):
        made.result()
    is_broken = False
    assert app.queue.dead().redrive([made.id or 0]) == ["redriven"]
    run_until_empty(app)
    assert made.result() == 7
    assert len(calls) == 1


def test_only_steps_with_on_buried_have_a_notice(app: App[Queue]) -> None:
    notices: list[str] = []

    @app.task(on_buried=lambda notice: notices.append(notice.payload["task"]))
    def watched() -> None: ...

    @app.task(max_attempts=1)
    def fail() -> None:
        raise OSError

    chain(watched).then(fail).enqueue("acme")
    done = run_until_empty(app, errors="keep")
    assert [one.outcome for one in done] == ["advanced", "buried"]
    assert notices == []


def test_a_step_can_wait_and_a_chain_keeps_its_priority(app: App[Queue], connect: Connect) -> None:
    @app.task
    def step() -> None: ...

    urgent = chain(step).then(step).then(step.options(delay=600)).options(priority=5).enqueue("acme")
    app.queue.enqueue("acme", {"task": "step", "arguments": {}})
    done = run_until_empty(app)
    assert [one.message.id == urgent.id for one in done] == [True, True, False]
    report = app.queue.status_of(urgent.id or 0)
    assert report.status == "scheduled"
    assert report.at is not None
    assert report.at - done[1].message.created_at > timedelta(seconds=500)


def test_a_chain_is_cancelled_at_any_step(app: App[Queue]) -> None:
    calls: list[int] = []

    @app.task(keep_result=HOUR)
    def step(n: int) -> None:
        calls.append(n)
        if n == 1:
            app.queue.cancel([lonnymq.current_message().id])

    made = chain(step, 0).then(step, 1).then(step, 2).enqueue("acme")
    run_until_empty(app, errors="keep")
    assert calls == [0, 1]
    with pytest.raises(lonnymq.MessageCancelled):
        made.result()


def test_the_next_step_commits_with_the_effect_of_the_one_before(dsn: str, app: App[Queue]) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table public.effect (step text, attempt integer)")

    def record(step: str) -> None:
        message = lonnymq.current_message()
        with psycopg.connect(dsn) as connection:
            connection.execute("insert into public.effect values (%s, %s)", [step, message.attempt])
            outcome = message.complete(result={"step": step}, connection=connection)
            assert outcome is lonnymq.CompleteOutcome.COMPLETED
            if message.attempt == 1:
                raise RuntimeError("before the commit")

    @app.task(retry=AT_ONCE)
    def first() -> dict[str, str]:
        record("first")
        return {"step": "what is returned after complete() is ignored"}

    @app.task(retry=AT_ONCE, keep_result=HOUR)
    def second(before: dict[str, str]) -> dict[str, str]:
        assert before == {"step": "first"}
        record("second")
        return {}

    made = chain(first).then(second).enqueue("acme")
    done = run_until_empty(app, errors="keep")
    assert [one.outcome for one in done] == ["deferred", "advanced", "deferred", "completed"]
    assert made.result() == {"step": "second"}
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute("select * from public.effect order by 1").fetchall()
        connection.execute("drop table public.effect")
    assert found == [("first", 2), ("second", 2)]


def test_a_result_that_cannot_be_passed_on_buries_the_step(app: App[Queue]) -> None:
    @app.task
    def unkeepable() -> Any:
        return {1, 2}

    @app.task
    def large() -> str:
        return "x" * 2000

    @app.task
    def take(value: Any) -> None: ...

    app.queue.set(max_content_bytes=1000)
    for first in (unkeepable, large):
        chain(first).then(take).enqueue("acme")
    run_until_empty(app, errors="keep")
    errors = [letter.error or "" for letter in app.queue.dead().list()]
    assert errors[0].startswith("the task has run, but its result cannot be passed on: unkeepable:")
    assert errors[1].startswith("the work is done, but its next step was refused:")
    assert "at most 1000 bytes" in errors[1]


def test_any_program_can_write_a_chain(app: App[Queue], connect: Connect) -> None:
    calls: list[tuple[int, int]] = []

    @app.task
    def double(number: int) -> int:
        return 2 * number

    @app.task
    def add(a: int, b: int) -> None:
        calls.append((a, b))

    payload = {
        "task": "double",
        "arguments": {"number": 4},
        "then": [
            {"task": "double", "arguments": {}, "takes": "number"},
            {"task": "add", "arguments": {"a": 1}, "takes": "b"},
            {"task": "add", "arguments": {"a": 3, "b": 4}},
        ],
    }
    connect().execute("select message_create('acme', %s)", [json.dumps(payload).encode()])
    run_until_empty(app)
    assert calls == [(1, 16), (3, 4)]


BAD_STEPS: dict[str, Any] = {
    "an object": {},
    "empty": [],
    "too long": [{"task": "double", "arguments": {}}] * 100,
    "no task": [{"arguments": {}}],
    "no arguments": [{"task": "double"}],
    "takes a number": [{"task": "double", "arguments": {}, "takes": 7}],
    "negative delay": [{"task": "double", "arguments": {}, "delay_ms": -1}],
    "a text as delay": [{"task": "double", "arguments": {}, "delay_ms": "1"}],
}


@pytest.mark.parametrize("name", BAD_STEPS)
def test_a_message_with_invalid_steps_is_buried_before_it_runs(app: App[Queue], name: str) -> None:
    calls: list[int] = []

    @app.task
    def double(number: int) -> None:
        calls.append(number)

    app.queue.enqueue("a", {"task": "double", "arguments": {"number": 1}, "then": BAD_STEPS[name]})
    run_until_empty(app, errors="keep")
    (letter,) = app.queue.dead().list()
    assert (letter.error or "").startswith("then")
    assert calls == []


def test_a_tenants_chain_stays_in_its_channel_and_its_limits(dsn: str, app: App[Queue]) -> None:
    """A tenant can write any content, also steps and headers that no client of ours would write."""
    seen: list[Any] = []

    def report(notice: lonnymq.Message) -> None:
        seen.append(("notice", notice.channel))

    @app.task(on_buried=report)
    def step() -> None:
        message = lonnymq.current_message()
        seen.append((message.channel, message.max_attempts))
        if len(seen) == 2:
            raise lonnymq.Bury("enough")

    role = f"lonnymq_{uuid.uuid4().hex[:8]}"
    app.queue.channel("acme").set(max_attempts=3)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
        try:
            app.queue.grant(role, "tenant", channels=["acme"])
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
            later = {
                "task": "step",
                "arguments": {},
                "channel": "zebra",
                "max_attempts": 99,
                "headers": {"lonnymq-on-buried": "zebra"},
                "on_buried": True,
            }
            payload = {"task": "step", "arguments": {}, "channel": "zebra", "then": [later, later]}
            app.queue.tenant.enqueue("acme", payload, connection=connection)
            run_until_empty(app, errors="keep")
        finally:
            connection.execute("reset role")
            app.queue.revoke(role)
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
    assert seen == [("acme", 3), ("acme", 3), ("notice", "acme")]
    assert [one.channel for one in app.queue.channels()] == ["acme"]


def _wrong(app: App[Queue], make: Callable[[Any, Any, Any], object], match: str) -> None:
    @app.task
    def find(url: str) -> int:
        return 7

    @app.task
    def cut(video: int, to_s: float = 1.0) -> None: ...

    @app.task
    def count() -> int:
        return 1

    with pytest.raises(lonnymq.InvalidArgument, match=match):
        make(find, cut, count)


FUNCTION: Any = len
WRONG: dict[str, tuple[Callable[[Any, Any, Any], object], str]] = {
    "a missing argument": (lambda find, cut, count: chain(find), r"find\(url: str\).*missing"),
    "a wrong type": (
        lambda find, cut, count: chain(find, "u").then(cut, "x"),
        "cut: to_s must be a finite float",
    ),
    "an unknown argument": (
        lambda find, cut, count: chain(find, "u").then(cut, to=1),
        "unknown argument 'to'; did you mean 'to_s'",
    ),
    "a step without arguments": (
        lambda find, cut, count: chain(find, "u").then(count),
        "its first argument would take the result of the step before, but it has none",
    ),
    "a function": (lambda find, cut, count: chain(FUNCTION), "task must be a task"),
    "a function as a step": (lambda find, cut, count: chain(count).then(FUNCTION), "task must be a task"),
    "options of the first step": (
        lambda find, cut, count: chain(find.options(delay=1), "u"),
        r"task must be a task; options are set with chain\(...\).options\(...\)",
    ),
    "a key of a later step": (
        lambda find, cut, count: chain(count).then(cut.options(key="k")),
        "cut: a step of a chain has no option but delay",
    ),
    "a bad delay": (lambda find, cut, count: chain(count).then(cut.options(delay=-1)), "delay"),
    "too many steps": (lambda find, cut, count: _long(count, cut, 101), "at most 100 steps"),
}


def _long(count: Any, cut: Any, steps: int) -> Any:
    made = chain(cut, 1)
    for _ in range(steps - 1):
        made = made.then(cut, 1)
    return made


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_chain_is_refused_where_it_is_written(app: App[Queue], name: str) -> None:
    _wrong(app, *WRONG[name])


def test_options_of_a_chain_that_were_set_before_stay() -> None:
    app = App("dbname=nobody")

    @app.task
    def step() -> None: ...

    keyed = chain(step).options(key="k", headers={"region": "eu"}, keep_result=60)
    message = keyed.then(step).options(delay=5, keep_result=30).message("acme")
    assert (message.key, message.headers, message.delay) == ("k", {"region": "eu"}, 5)
    assert message.keep_result == 30
    assert keyed.message("acme").delay is None


def test_a_chain_of_a_hundred_steps_runs(app: App[Queue]) -> None:
    @app.task
    def cut(video: int) -> None: ...

    _long(None, cut, 100).enqueue("a")
    assert len(run_until_empty(app)) == 100


def test_chains_are_enqueued_in_async_code_and_in_bulk(dsn: str, app: App[Queue]) -> None:
    @app.task
    def find() -> int:
        return 20

    @app.task(keep_result=HOUR)
    async def double(number: int) -> int:
        return 2 * number

    doubled = chain(find).then(double)

    async def main() -> int:
        async with lonnymq.AsyncQueue(dsn) as queue:
            worker = lonnymq.Worker(queue, app)
            serving = asyncio.create_task(worker.serve())
            created = await doubled.enqueue_async("a")
            result = await created.result(wait=60)
            worker.stop()
            await serving
            await app.clients.close_async()
            assert finished(worker) == {"advanced": 1, "completed": 1}
            return result

    assert asyncio.run(main()) == 40
    created = app.queue.enqueue_many([doubled.message(f"c{n}") for n in range(3)])
    app.queue.copy_in([doubled.options(key="k").message("c0")])
    run_until_empty(app)
    assert [app.queue.result(one.id or 0) for one in created] == [40] * 3


SHOP = """
import os, signal
import lonnymq
app = lonnymq.App()
LOG = os.environ["SHOP_LOG"]

def note(line):
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, (line + "\\n").encode())
    os.close(descriptor)

@app.task(keep_result=3600)
def step(before: list[int], number: int) -> list[int]:
    note(f"begin {number}")
    message = lonnymq.current_message()
    if number in (1, 3) and message.attempt + message.suspicion == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    note(f"end {number}")
    return [*before, number]
"""


def test_a_killed_worker_repeats_only_the_step_that_it_was_in(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    log = tmp_path / "log"
    environment = {**os.environ, "LONNYMQ_DSN": dsn, "SHOP_LOG": str(log)}
    module: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONNYMQ_DSN", dsn)
        patch.setenv("SHOP_LOG", str(log))
        exec(SHOP, module)
    step = module["step"]
    made = chain(step, [], 0).then(step, 1).then(step, 2).then(step, 3).then(step, 4).enqueue("acme")

    def start() -> ForkedProgram:
        return ForkedProgram("lonnymq", "work", "shop", "--lease-s", "3", cwd=tmp_path, env=environment)

    try:
        for _ in range(2):
            assert start().wait(120) == -9
        worker = start()
        try:
            assert made.result(wait=120) == [0, 1, 2, 3, 4]
        finally:
            worker.terminate()
            worker.wait()
        ended = [line for line in log.read_text().splitlines() if line.startswith("end")]
        assert ended == [f"end {n}" for n in range(5)]
        eventually(lambda: not module["app"].queue.status().leased)
    finally:
        module["app"].queue.close()
