"""Attacks on chains, groups and hooks: killed workers, wrong input, and hooks that do what they must not."""

import asyncio
import itertools
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import lonnymq
from lonnymq import App, AsyncQueue, Queue, Retry, chain, group
from lonnymq.testing import run_until_empty
from tests.conftest import Connect
from tests.forked import ForkedProgram
from tests.worker.workers import running_worker, wait_until

HOUR = timedelta(hours=1)
AT_ONCE = Retry(first_s=0, max_s=0)


@pytest.fixture
def app(dsn: str) -> Any:
    with Queue(dsn) as queue:
        yield App(queue)


PROGRAM = """
import os, random, time
import psycopg
import lonnymq

app = lonnymq.App()
FOREVER = {"max_attempts": None, "retry": lonnymq.Retry(first_s=0, max_s=0), "keep_result": 3600}

def note(what: str, step: int) -> None:
    message = lonnymq.current_message()
    with psycopg.connect(os.environ["LONNYMQ_DSN"], autocommit=True) as connection:
        connection.execute(
            "insert into public.note (message_id, uid, what, step, process) values (%s, %s, %s, %s, %s)",
            [message.id, message.uid, what, step, os.getpid()],
        )

@app.task(**FOREVER)
def start() -> list[int]:
    note("began", 0)
    time.sleep(random.random() * 0.25)
    note("ended", 0)
    return [0]

@app.task(**FOREVER)
def step(numbers: list[int], number: int) -> list[int]:
    note("began", number)
    time.sleep(random.random() * 0.25)
    note("ended", number)
    return [*numbers, number]

@app.task(**FOREVER)
def gather(lists: list[list[int]]) -> list[int]:
    note("began", 0)
    return [sum(one) for one in lists]
"""


class Program:
    """A program with tasks, whose workers are processes that a test kills."""

    def __init__(self, dsn: str, directory: Path) -> None:
        (directory / "attacked.py").write_text(PROGRAM)
        self._directory = directory
        self._environment = {**os.environ, "LONNYMQ_DSN": dsn}
        self._workers: list[ForkedProgram] = []
        self.module: dict[str, Any] = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LONNYMQ_DSN", dsn)
            exec(PROGRAM, self.module)

    def start_worker(self) -> None:
        command = (
            "lonnymq",
            "work",
            "attacked",
            "--concurrency",
            "3",
            "--lease-s",
            "2",
            "--log-level",
            "error",
        )
        process = ForkedProgram(*command, "--log-level", "error", cwd=self._directory, env=self._environment)
        self._workers.append(process)

    @property
    def oldest_worker(self) -> int:
        return self._workers[0].pid

    def kill_worker(self) -> None:
        process = self._workers.pop(0)
        process.kill()
        process.wait()

    def close(self) -> None:
        while self._workers:
            self.kill_worker()
        self.module["app"].queue.close()


@pytest.fixture
def program(dsn: str, tmp_path: Path) -> Iterator[Program]:
    program = Program(dsn, tmp_path)
    yield program
    program.close()


def is_within_a_step(connection: psycopg.Connection[Any], process: int) -> bool:
    row = connection.execute(
        "select count(*) filter (where what = 'began') > count(*) filter (where what = 'ended')"
        " from public.note where process = %s and step > 0",
        [process],
    ).fetchone()
    return row is not None and row[0]


@pytest.mark.slow
@pytest.mark.fault
def test_killed_workers_neither_lose_nor_repeat_nor_hasten_a_step(program: Program, connect: Connect) -> None:
    connection = connect()
    connection.execute(
        "create table public.note"
        " (id bigserial, message_id bigint, uid text, what text, step integer, process integer)"
    )
    connection.execute("""select queue_set('{"history": "metadata"}')""")
    start, step, gather = (program.module[name] for name in ("start", "step", "gather"))
    steps = chain(start)
    for number in range(1, 6):
        steps = steps.then(step, number)
    chains = [steps.enqueue(f"c{n % 3}") for n in range(20)]
    groups = [
        group(chain(start).then(step, n) for n in range(1, 6))
        .then(gather)
        .then(step, 99)
        .enqueue(f"c{k % 3}")
        for k in range(12)
    ]
    members = dict(connection.execute("select callback_id, members from message_group").fetchall())
    choose = random.Random(7)
    for _ in range(2):
        program.start_worker()
    for _ in range(8):
        time.sleep(choose.uniform(0.1, 0.5))
        asyncio.run(wait_until(lambda: is_within_a_step(connection, program.oldest_worker), "a step began"))
        program.kill_worker()
        program.start_worker()
    assert [one.result(wait=150) for one in chains] == [[0, 1, 2, 3, 4, 5]] * len(chains)
    assert [one.result(wait=150) for one in groups] == [[1, 2, 3, 4, 5, 99]] * len(groups)

    began: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    uids: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    ended: defaultdict[int, int] = defaultdict(int)
    notes = connection.execute("select id, message_id, uid, what, step from public.note").fetchall()
    for sequence, message_id, uid, what, number in notes:
        uids[message_id, number].add(uid)
        if what == "began":
            began[message_id, number].append(sequence)
        else:
            ended[message_id] = max(ended[message_id], sequence)
    assert len(began) == 20 * 6 + 12 * (5 * 2 + 2)
    assert any(len(attempts) > 1 for attempts in began.values()), "no worker was killed within a step"
    by_message: defaultdict[int, list[int]] = defaultdict(list)
    for message_id, number in began:
        by_message[message_id].append(number)
    for message_id, numbers in by_message.items():
        assert len(set().union(*(uids[message_id, one] for one in numbers))) == len(numbers)
        for one, following in itertools.pairwise(sorted(numbers)):
            assert max(began[message_id, one]) < min(began[message_id, following])
    for callback, ids in members.items():
        assert min(began[callback, 0]) > max(ended[one] for one in ids)
    completed = dict(
        connection.execute(
            "select message_id, count(*) from history where outcome = 'completed' group by 1"
        ).fetchall()
    )
    assert completed == {message_id: len(numbers) for message_id, numbers in by_message.items()}


def test_waiting_for_a_result_ends_with_every_outcome_of_a_later_step(app: App[Queue]) -> None:
    queue = app.queue

    @app.task
    def first() -> int:
        return 1

    @app.task(keep_result=HOUR, max_attempts=1)
    def second(number: int, mode: str) -> int:
        message = lonnymq.current_message()
        if mode == "cancel":
            queue.cancel([message.id])
        elif mode == "raise":
            raise OSError("no disk")
        elif mode == "bury":
            message.bury(error="not a video")
        elif mode == "complete":
            message.complete(result=7)
        return number

    @app.task
    def forgotten(number: int) -> int:
        return number

    answers: dict[str, Any] = {}

    def wait(mode: str, call: Any) -> None:
        began = time.monotonic()
        try:
            answers[mode] = call.result(wait=60)
        except lonnymq.LonnyError as error:
            answers[mode] = type(error)
        assert time.monotonic() - began < 40, mode

    threads = []
    calls = {
        mode: chain(first).then(second, mode) for mode in ("cancel", "raise", "bury", "complete", "return")
    }
    calls["forgotten"] = chain(first).then(forgotten)
    for mode, one in calls.items():
        threads.append(threading.Thread(target=wait, args=[mode, one.enqueue("acme")]))
        threads[-1].start()
    time.sleep(0.3)
    run_until_empty(app, errors="keep")
    for thread in threads:
        thread.join()
    assert answers == {
        "cancel": lonnymq.MessageCancelled,
        "raise": lonnymq.MessageBuried,
        "bury": lonnymq.MessageBuried,
        "complete": 7,
        "return": 1,
        "forgotten": lonnymq.ResultUnknown,
    }


def test_a_step_whose_task_was_renamed_is_kept_with_what_it_was_to_take(app: App[Queue]) -> None:
    @app.task
    def first() -> int:
        return 5

    @app.task(name="old name", on_buried=lambda notice: None)
    def renamed(number: int) -> int:
        return number + 1

    @app.task(keep_result=HOUR)
    def last(number: int) -> int:
        return number * 2

    made = chain(first).then(renamed).then(last).enqueue("acme")
    deployed = App(app.queue)
    deployed.task(name="first")(first.function)
    deployed.task(name="last", keep_result=HOUR)(last.function)
    deployed.task(name="new name")(renamed.function)
    run_until_empty(deployed, errors="keep")
    with pytest.raises(lonnymq.MessageBuried, match="unknown task 'old name'"):
        made.result()
    letters = {one.id: one for one in app.queue.dead().list()}
    assert b'"number":5' in letters[made.id or 0].content
    run_until_empty(app, errors="keep")
    assert app.queue.dead().redrive([made.id or 0]) == ["redriven"]
    run_until_empty(app)
    assert made.result() == 12


def test_a_waiting_consumer_is_woken_by_a_step_of_a_capped_channel(dsn: str) -> None:
    with Queue(dsn) as queue, Queue(dsn) as other:
        queue.channel("acme").set(max_concurrency=1)
        queue.enqueue("acme", 1)
        queue.enqueue("acme", 2)
        [first] = queue.dequeue(5)
        got: list[tuple[float, Any]] = []

        def wait() -> None:
            found = other.dequeue(5, wait=60)
            got.append((time.monotonic(), [one.payload for one in found]))

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(1.0)
        assert got == []
        advanced_at = time.monotonic()
        first.advance(payload=3)
        thread.join()
        ((at, payloads),) = got
        assert payloads == [2]
        assert at - advanced_at < 1.5


WRONG_MEMBERS: dict[str, Any] = {
    "a chain": lambda work: chain(work, 1),
    "a number": lambda work: 5,
    "nothing": lambda work: None,
    "a task": lambda work: work,
    "endless": lambda work: (chain(work, n) for n in itertools.count()),
    "a text": lambda work: "abc",
}


@pytest.mark.parametrize("name", WRONG_MEMBERS)
def test_wrong_members_are_named(app: App[Queue], name: str) -> None:
    @app.task
    def work(number: int) -> int:
        return number

    with pytest.raises(lonnymq.InvalidArgument, match="members"):
        group(WRONG_MEMBERS[name](work))


def test_an_error_of_a_program_that_makes_members_is_its_own(app: App[Queue]) -> None:
    @app.task
    def work() -> int:
        return 1

    def members() -> Iterator[Any]:
        yield chain(work)
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        group(members())


@pytest.mark.parametrize("deadline", [float("nan"), float("inf"), -1, True, "x", None, 0, timedelta(0)])
def test_a_wrong_deadline_is_refused(app: App[Queue], deadline: Any) -> None:
    @app.task
    def work() -> int:
        return 1

    @app.task
    def total(numbers: list[int]) -> None: ...

    with pytest.raises(lonnymq.InvalidArgument, match="deadline"):
        group([chain(work)], deadline=deadline).then(total).enqueue("acme")
    assert app.queue.status().waiting == 0


@pytest.mark.parametrize("delay_ms", ["true", "1.5", "1e400", "1" + "0" * 30, "[]", "false"])
def test_a_foreign_step_with_a_wrong_delay_is_buried_before_it_runs(
    app: App[Queue], connect: Connect, delay_ms: str
) -> None:
    calls: list[int] = []

    @app.task
    def work() -> None:
        calls.append(1)

    step = '{"task": "work", "arguments": {}, "delay_ms": ' + delay_ms + "}"
    content = '{"task": "work", "arguments": {}, "then": [' + step + "]}"
    connect().execute("select message_create('acme', %s)", [content.encode()])
    run_until_empty(app, errors="keep")
    assert calls == []
    [letter] = app.queue.dead().list()
    assert "delay_ms" in (letter.error or "")


def test_the_hook_of_a_step_can_neither_end_nor_advance_it(app: App[Queue]) -> None:
    answers: list[Any] = []

    def meddle(message: lonnymq.Message, error: BaseException) -> None:
        answers.append((message.payload["task"], message.attempt, type(error).__name__))
        answers.extend([message.advance(payload={}), message.complete(result=3), message.bury(error="mine")])
        chain(other).then(other).enqueue("acme")
        raise RuntimeError("of the hook")

    @app.task
    def other() -> None: ...

    @app.task(on_failure=meddle, retry=AT_ONCE)
    def first() -> int:
        if lonnymq.current_message().attempt == 1:
            raise OSError
        return 1

    @app.task(on_failure=meddle, retry=AT_ONCE, keep_result=HOUR)
    def second(number: int) -> int:
        if lonnymq.current_message().attempt == 1:
            raise OSError
        return number + 1

    made = chain(first).then(second).enqueue("tiny")
    done = run_until_empty(app, errors="keep")
    lost = ["lease_lost"] * 3
    assert answers == [("first", 1, "OSError"), *lost, ("second", 1, "OSError"), *lost]
    assert made.result() == 2
    assert [one.outcome for one in done if one.handler == "other"] == ["advanced", "completed"] * 2
    assert app.queue.dead().list() == []


def test_the_hook_of_a_callback_is_told_who_has_failed(app: App[Queue]) -> None:
    told: list[tuple[str, str]] = []

    @app.task(max_attempts=1)
    def fail() -> int:
        raise OSError("no disk")

    @app.task(on_failure=lambda message, error: told.append((type(error).__name__, str(error))))
    def total(numbers: list[int]) -> None: ...

    group([chain(fail)]).then(total).enqueue("acme")
    run_until_empty(app, errors="keep")
    assert [kind for kind, _ in told] == ["Bury"]
    assert "OSError: no disk" in told[0][1]


def test_a_step_that_the_queue_refuses_has_a_notice(app: App[Queue]) -> None:
    """Its attempt has not failed: the work is done, so that `on_failure` is not called."""
    told: list[str] = []

    @app.task(
        on_failure=lambda message, error: told.append("failed"),
        on_buried=lambda notice: told.append("buried"),
    )
    def large() -> str:
        return "x" * 2000

    @app.task
    def take(value: str) -> None: ...

    app.queue.set(max_content_bytes=1000)
    chain(large).then(take).enqueue("acme")
    run_until_empty(app, errors="keep")
    assert told == ["buried"]


def test_results_and_steps_that_a_tenant_claims_are_not_followed(app: App[Queue]) -> None:
    calls: list[Any] = []

    @app.task
    def work() -> int:
        return 1

    @app.task
    def total(numbers: list[int]) -> None:
        calls.append(numbers)

    group([chain(work)]).then(total).enqueue("acme")
    claimed = {"task": "total", "arguments": {}, "group": {"takes": "numbers"}}
    for payload in (
        {"task": "work", "arguments": {}, "then": [claimed]},
        {"task": "work", "arguments": {}, "then": [{**claimed, "then": [claimed]}]},
        {**claimed, "then": [claimed]},
        {**claimed, "group": {"takes": 5}},
        {**claimed, "group": []},
        {**claimed, "arguments": None},
    ):
        app.queue.enqueue("evil", payload)
    run_until_empty(app, errors="keep")
    assert calls == [[1]]
    assert app.queue.status().dead == 6


def test_a_worker_that_stops_checks_the_groups_of_its_last_messages(dsn: str, connect: Connect) -> None:
    """Another session has the group locked while the worker stops: the worker asks again before it leaves."""
    locking = connect(autocommit=False)

    async def scenario() -> lonnymq.MessageStatus:
        began = asyncio.Event()

        async def handle(message: lonnymq.AsyncMessage) -> None:
            began.set()

        async with AsyncQueue(dsn) as queue:
            member = lonnymq.NewMessage(channel="a", payload=1)
            made = await queue.enqueue_group([member], lonnymq.NewMessage(channel="b", payload=2))
            locking.execute("select from message_group for update")
            async with running_worker(queue, handle) as worker:
                await began.wait()
                await wait_until(lambda: worker.counts.get("completed"), "the member has completed")
                await asyncio.sleep(0.06)
                worker.stop()
                asyncio.get_running_loop().call_later(0.2, locking.rollback)
            return (await queue.status_of(made.id or 0)).status

    assert asyncio.run(scenario()) is lonnymq.MessageStatus.WAITING


def test_members_that_are_cancelled_while_they_run_release_the_callback(dsn: str) -> None:
    """The worker learns of it with a heartbeat."""

    async def scenario() -> list[str]:
        seen: list[Any] = []

        async def handle(message: lonnymq.AsyncMessage) -> None:
            if message.payload == "callback":
                seen.extend([one.status for one in await message.queue.group_results(message)])
            elif message.payload == "hang":
                await message.queue.cancel([message.id])
                await asyncio.sleep(60)

        async with AsyncQueue(dsn) as queue:
            members = [lonnymq.NewMessage(channel="a", payload=one) for one in ("hang", "return")]
            await queue.enqueue_group(members, lonnymq.NewMessage(channel="b", payload="callback"))
            async with running_worker(queue, handle):
                await wait_until(lambda: seen, "the callback has run")
        return seen

    assert asyncio.run(scenario()) == ["cancelled", "completed"]


def test_a_member_of_another_language_that_keeps_no_result_is_named(
    app: App[Queue], connect: Connect
) -> None:
    @app.task
    def work() -> int:
        return 1

    @app.task(keep_result=HOUR)
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    made = group([chain(work), chain(work)]).then(total).enqueue("acme")
    connection = connect()
    ((id_, token),) = connection.execute("select message_id, token from message_dequeue(1)").fetchall()
    connection.execute("select message_complete(%s, %s)", [[id_], [token]])
    run_until_empty(app, errors="keep")
    with pytest.raises(lonnymq.MessageBuried, match=f"message {id_} has ended, and its result is not known"):
        made.result()
