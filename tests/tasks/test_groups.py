"""Groups: tasks side by side, and a callback that is called with their results."""

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lonnymq
from lonnymq import App, NewMessage, Queue, Retry, chain, group
from lonnymq.testing import run_until_empty
from tests.conftest import Connect
from tests.forked import ForkedProgram
from tests.worker.workers import eventually

HOUR = timedelta(hours=1)
AT_ONCE = Retry(first_s=0, max_s=0)


@pytest.fixture
def app(dsn: str) -> Any:
    with lonnymq.Queue(dsn) as queue:
        queue.install()
        yield lonnymq.App(queue)


def test_a_callback_receives_the_results_in_order(app: App[Queue]) -> None:
    @app.task
    def square(number: int) -> int:
        return number * number

    @app.task
    async def increase(number: int) -> int:
        return number + 1

    @app.task(keep_result=HOUR)
    def total(numbers: list[int], name: str) -> str:
        return f"{name}: {numbers}"

    @app.task(keep_result=HOUR)
    async def shout(text: str) -> str:
        return text.upper()

    squares = group(chain(square, n).then(increase) for n in range(5)).then(total, name="squares")
    made = squares.enqueue("acme")
    assert made.outcome is lonnymq.CreateOutcome.CREATED
    assert app.queue.status_of(made.id or 0).status == "scheduled"
    done = run_until_empty(app)
    assert [one.handler for one in done].index("total") == len(done) - 1
    assert made.result() == "squares: [1, 2, 5, 10, 17]"
    louder = squares.then(shout).options(key="k", headers={"region": "eu"}).enqueue("acme")
    again = squares.then(shout).options(key="k").enqueue("acme")
    assert (again.outcome, again.id) == ("duplicate", louder.id)
    run_until_empty(app)
    assert louder.result() == "SQUARES: [1, 2, 5, 10, 17]"


def test_members_that_return_nothing_pass_nothing_on(app: App[Queue]) -> None:
    calls: list[int] = []

    @app.task
    def work(number: int) -> None:
        calls.append(number)

    @app.task(keep_result=HOUR)
    def count() -> int:
        return len(calls)

    made = group(chain(work, n) for n in range(3)).then(count).enqueue("acme")
    run_until_empty(app)
    assert made.result() == 3


def test_members_may_be_messages_in_channels_of_their_own(app: App[Queue]) -> None:
    @app.task
    def name() -> str:
        return lonnymq.current_message().channel

    @app.task(keep_result=HOUR)
    def join(names: list[str]) -> str:
        return ", ".join(names)

    made = group(name.message(f"tenant {n}") for n in range(3)).then(join).enqueue("acme")
    channels = [one.message.channel for one in run_until_empty(app)]
    assert (sorted(channels[:3]), channels[3]) == (["tenant 0", "tenant 1", "tenant 2"], "acme")
    assert made.result() == "tenant 0, tenant 1, tenant 2"


def test_a_member_that_fails_buries_the_callback_until_both_are_redriven(app: App[Queue]) -> None:
    reported: list[str] = []
    is_broken = True

    @app.task(retry=AT_ONCE, max_attempts=2)
    def work(number: int) -> int:
        if is_broken and number == 1:
            raise OSError("no disk")
        return number

    def report(notice: lonnymq.Message) -> None:
        reported.append(notice.headers["lonnymq-buried-error"])

    @app.task(keep_result=HOUR, on_buried=report)
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    made = group(chain(work, n) for n in range(3)).then(total).enqueue("acme")
    cancelled = group([chain(work, 5).options(delay=60)]).then(total).enqueue("tiny")
    run_until_empty(app, errors="keep")
    with pytest.raises(lonnymq.MessageBuried, match="1 of 3 members of its group have no result: message"):
        made.result()
    assert len(reported) == 1
    assert reported[0].endswith("was buried: OSError: no disk")
    assert app.queue.status_of(cancelled.id or 0).status == "scheduled"
    is_broken = False
    for task in ("work", "total"):
        letters = [one.id for one in app.queue.dead("acme").list() if f'"{task}"'.encode() in one.content]
        assert app.queue.dead().redrive(letters) == ["redriven"]
        run_until_empty(app)
    assert made.result() == 3


def test_a_cancelled_member_buries_the_callback(app: App[Queue], connect: Connect) -> None:
    @app.task
    def work() -> int:
        return 1

    @app.task(keep_result=HOUR)
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    made = group([chain(work), chain(work)]).then(total).enqueue("acme")
    connection = connect()
    ((members,),) = connection.execute("select members from message_group").fetchall()
    app.queue.cancel(members[1:])
    run_until_empty(app, errors="keep")
    with pytest.raises(lonnymq.MessageBuried, match=f"message {members[1]} was cancelled"):
        made.result()


def test_a_callback_at_its_deadline_says_who_has_not_ended(app: App[Queue]) -> None:
    @app.task
    def work() -> int:
        return 1

    @app.task(keep_result=HOUR)
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    late = [chain(work), *[chain(work).options(delay=60)] * 4]
    made = group(late, deadline=0.05).then(total).enqueue("acme")

    def has_ended() -> bool:
        run_until_empty(app, errors="keep")
        return not app.queue.status_of(made.id or 0).status.is_live

    eventually(has_ended)
    with pytest.raises(lonnymq.MessageBuried, match="4 of 5 members of its group") as raised:
        made.result()
    assert str(raised.value).count("has not ended: it is scheduled") == 3


def test_results_that_are_too_large_bury_the_callback(app: App[Queue]) -> None:
    @app.task
    def work() -> str:
        return "x" * 1_000_000

    @app.task(keep_result=HOUR)
    def total(texts: list[str]) -> int:
        return len(texts)

    made = group(chain(work) for _ in range(17)).then(total).enqueue("acme")
    run_until_empty(app, errors="keep")
    with pytest.raises(
        lonnymq.MessageBuried,
        match="the results of its group cannot be read: results must be at most 16777216 bytes together",
    ):
        made.result()


def test_a_message_cannot_claim_the_results_of_a_group(app: App[Queue]) -> None:
    """A tenant can write any content and any header."""
    calls: list[Any] = []

    @app.task
    def work() -> int:
        return 1

    @app.task
    def total(numbers: list[int]) -> None:
        calls.append(numbers)

    made = group([chain(work)]).then(total).options(headers={}).enqueue("acme")
    payload = {"task": "total", "arguments": {}, "group": {"takes": "numbers"}}
    for headers in (None, {"lonnymq-group": str(made.id)}, {"lonnymq-group": "9" * 30}):
        app.queue.enqueue("evil", payload, headers=headers)
    app.queue.enqueue("evil", {"task": "total", "arguments": {}, "group": 7})
    app.queue.enqueue("evil", {"task": "work", "arguments": {}}, headers={"lonnymq-group": str(made.id)})
    run_until_empty(app, errors="keep")
    errors = [one.error or "" for one in app.queue.dead("evil").list()]
    assert len(errors) == 4
    assert all("its group is unknown" in one or one.startswith("group must be") for one in errors)
    assert calls == [[1]]


def test_groups_work_without_tasks(dsn: str) -> None:
    seen: list[Any] = []

    def handle(message: lonnymq.Message) -> None:
        if message.payload == "callback":
            seen.append([report.result_content for report in message.queue.group_results(message)])
        else:
            message.complete(result={"n": message.payload})

    with Queue(dsn) as queue:
        members = [NewMessage(channel=f"c{n}", payload=n) for n in range(3)]
        callback = NewMessage(channel="a", payload="callback", key="k")
        made = queue.enqueue_group(members, callback, deadline=HOUR)
        assert [queue.status_of(one).status for one in made.member_ids] == ["waiting"] * 3
        again = queue.enqueue_group(members, callback)
        assert again == lonnymq.CreatedGroup(lonnymq.CreateOutcome.DUPLICATE, made.id)
        run_until_empty(handle, queue=queue)
        assert seen == [[b'{"n":0}', b'{"n":1}', b'{"n":2}']]
        queue.channel("full").set(max_size=1)
        full = NewMessage(channel="full", payload=1)
        assert queue.enqueue_group([full, full], callback) == lonnymq.CreatedGroup(
            lonnymq.CreateOutcome.DROPPED, None
        )
        with pytest.raises(lonnymq.ChannelFull):
            queue.enqueue_group([full, full], callback, raise_if_dropped=True)
        refused: list[tuple[list[NewMessage], NewMessage, Any, str]] = [
            ([], callback, HOUR, "members must be 1 to 1000 messages"),
            ([callback], callback, HOUR, r"members\[0\]: key must be absent"),
            (members, NewMessage(channel="a", payload=1, priority=1), HOUR, "the callback must be due when"),
            (members, callback, timedelta(days=8), "at most 7 days"),
            (members, callback, 0, "deadline must be more than 0"),
        ]
        for given, last, deadline, match in refused:
            with pytest.raises(lonnymq.InvalidArgument, match=match):
                queue.enqueue_group(given, last, deadline=deadline)


def _wrong(app: App[Queue], make: Callable[[Any, Any], object], match: str) -> None:
    @app.task
    def work(number: int) -> int:
        return number

    @app.task
    def total(numbers: list[int], name: str = "") -> None: ...

    with pytest.raises(lonnymq.InvalidArgument, match=match):
        make(work, total)


FUNCTION: Any = print
WRONG: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "no members": (lambda work, total: group([]), "members must be 1 to 1000 members"),
    "too many members": (lambda work, total: group([chain(work, 1)] * 1001), "members must be at most 1000"),
    "a task as a member": (lambda work, total: group([work]), r"members\[0\] must be a chain"),
    "a function as the callback": (
        lambda work, total: group([chain(work, 1)]).then(FUNCTION),
        "must be a task",
    ),
    "options of the callback": (
        lambda work, total: group([chain(work, 1)]).then(total.options(delay=1)),
        r"options are set with group\(...\).then\(...\).options\(...\)",
    ),
    "an unknown argument": (
        lambda work, total: group([chain(work, 1)]).then(total, nam="x"),
        "did you mean 'name'",
    ),
    "a delay of the callback": (
        lambda work, total: group([chain(work, 1)]).then(total).options(delay=1).enqueue("a"),
        "the callback must be due when the members have ended",
    ),
    "a key of a member": (
        lambda work, total: group([chain(work, 1).options(key="k")]).then(total).enqueue("a"),
        r"members\[0\]: key must be absent",
    ),
    "a group in a group": (
        lambda work, total: group([group([chain(work, 1)]).then(total)]).then(work, 1).enqueue("a"),
        "a chain that begins with a group is not one message",
    ),
    "a group as a message": (
        lambda work, total: group([chain(work, 1)]).then(total).message("a"),
        "a chain that begins with a group is not one message",
    ),
    "a long deadline": (
        lambda work, total: group([chain(work, 1)], deadline=8 * 86400).then(total).enqueue("a"),
        "deadline must be more than 0 and at most 7 days",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_group_is_refused(app: App[Queue], name: str) -> None:
    _wrong(app, *WRONG[name])
    assert app.queue.status().waiting == 0


SHOP = """
import os, signal, time
from pathlib import Path
import lonnymq
from lonnymq.worker.group_keeper import GroupKeeper
app = lonnymq.App()
DIRECTORY = Path(os.environ["SHOP"])

@app.task
def work(number: int) -> int:
    if number < 0:
        # All members end at the same moment.
        (DIRECTORY / f"{number} {os.getpid()}").touch()
        while not (DIRECTORY / "go").exists():
            time.sleep(0.001)
    return number

@app.task(keep_result=3600)
def total(numbers: list[int]) -> int:
    return sum(numbers)

if "KILL" in os.environ:
    async def check(self: GroupKeeper) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    GroupKeeper._check_some = check
"""


class Shop:
    """A program with tasks, and its workers, which are processes."""

    def __init__(self, dsn: str, directory: Path) -> None:
        self._directory = directory
        (directory / "shop.py").write_text(SHOP)
        self._environment = {**os.environ, "LONNYMQ_DSN": dsn, "SHOP": str(directory)}
        self.module: dict[str, Any] = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LONNYMQ_DSN", dsn)
            patch.setenv("SHOP", str(directory))
            exec(SHOP, self.module)

    def worker(self, **environment: str) -> ForkedProgram:
        environment = {**self._environment, **environment}
        command = ("lonnymq", "work", "shop", "--concurrency", "2")
        return ForkedProgram(*command, cwd=self._directory, env=environment)


@pytest.fixture
def shop(dsn: str, tmp_path: Path) -> Any:
    shop = Shop(dsn, tmp_path)
    yield shop
    shop.module["app"].queue.close()


def test_a_worker_that_is_killed_between_completion_and_check_does_not_stop_a_group(shop: Shop) -> None:
    work, total = shop.module["work"], shop.module["total"]
    made = group(chain(work, n) for n in range(3)).then(total).enqueue("acme")
    for _ in range(3):
        status = shop.module["app"].queue.status()
        if status.waiting + status.leased == 1:
            break
        assert shop.worker(KILL="yes").wait(120) == -9
    assert shop.module["app"].queue.status_of(made.id or 0).status == "scheduled"
    worker = shop.worker()
    try:
        assert made.result(wait=120) == 3
    finally:
        worker.terminate()
        worker.wait()


def test_members_that_end_at_the_same_moment_release_the_callback_once(shop: Shop, tmp_path: Path) -> None:
    work, total = shop.module["work"], shop.module["total"]
    workers = [shop.worker() for _ in range(2)]
    try:
        made = group(chain(work, -n) for n in range(1, 5)).then(total).enqueue("acme")
        eventually(lambda: len(list(tmp_path.glob("-*"))) == 4)
        (tmp_path / "go").touch()
        assert made.result(wait=120) == -10
        groups = [group(chain(work, n) for n in range(10)).then(total).enqueue(f"c{k}") for k in range(20)]
        results: list[int] = []

        def wait_for(call: lonnymq.Enqueued[int]) -> None:
            results.append(call.result(wait=120))

        threads = [threading.Thread(target=wait_for, args=[one]) for one in groups]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [45] * 20
    finally:
        for worker in workers:
            worker.terminate()
            worker.wait()
