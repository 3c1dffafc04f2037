"""on_buried runs when a message of a task is buried, also if its worker was lost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import lonnymq
from lonnymq import App, InvalidArgument, Queue
from lonnymq.testing import run_until_empty
from tests.conftest import Connect
from tests.tasks.test_cron import tick


def test_on_buried_runs_after_the_last_attempt(queue: Queue) -> None:
    seen: list[Any] = []
    app = App(queue)

    def report(message: lonnymq.Message) -> None:
        error = message.headers["lonnymq-buried-error"].splitlines()[-1]
        seen.append((message.channel, message.payload["arguments"], message.headers["region"], error))

    @app.task(max_attempts=1, on_buried=report)
    def fail(video: int) -> None:
        raise OSError("no disk")

    fail.options(headers={"region": "eu"}).enqueue("acme", video=7)
    queue.enqueue_many([fail.options(headers={"region": "us"}).message("tiny", 8)])
    run_until_empty(app, errors="keep")
    assert sorted(seen) == [
        ("acme", {"video": 7}, "eu", "OSError: no disk"),
        ("tiny", {"video": 8}, "us", "OSError: no disk"),
    ]
    assert queue.status().dead == 2


def test_on_buried_runs_for_an_attempt_that_was_lost(queue: Queue, connect: Connect) -> None:
    seen: list[str] = []
    app = App(queue)

    async def report(message: lonnymq.AsyncMessage) -> None:
        seen.append(message.headers["lonnymq-buried-error"])

    @app.task(max_attempts=1, on_buried=report)
    def work() -> None: ...

    work.enqueue("acme")
    assert len(queue.dequeue(worker="killed")) == 1
    connect().execute("update lease set unlock_at = 0")
    run_until_empty(app)
    assert seen == ["the lease of attempt 1 expired (worker killed): an attempt was spent"]


def test_both_hooks_run_for_messages_of_a_cron(queue: Queue, dsn: str) -> None:
    seen: list[str] = []
    app = App(queue)

    def report(notice: lonnymq.Message) -> None:
        seen.append(f"buried {notice.headers['region']}")

    @app.cron("0 3 * * *", channel="reports", headers={"region": "eu"})
    @app.task(max_attempts=1, on_failure=lambda message, error: seen.append(repr(error)), on_buried=report)
    def nightly() -> None:
        raise OSError("no disk")

    (declared,) = app.crons
    queue.cron.set(**vars(declared), after=datetime.now(UTC) - timedelta(days=1))
    tick(dsn)
    run_until_empty(app, errors="keep")
    assert seen == ["OSError('no disk')", "buried eu"]


def test_a_notice_never_runs_the_task_again(queue: Queue) -> None:
    """Of two versions of a program, the later one may not have on_buried any more."""
    runs: list[int] = []

    def make(**options: Any) -> tuple[App[Queue], Any]:
        app = App(queue)

        @app.task(max_attempts=1, **options)
        def work() -> None:
            runs.append(1)
            raise OSError

        return app, work

    _, work = make(on_buried=lambda message: None)
    app, _ = make()
    work.enqueue("acme")
    run_until_empty(app, errors="keep")
    assert runs == [1]
    assert "has no on_buried" in str(queue.dead().list()[1].error)


def test_what_cannot_be_called_with_a_message_is_refused(queue: Queue) -> None:
    app = App(queue)
    for wrong in (5, lambda: None):
        with pytest.raises(InvalidArgument, match="on_buried must be"):

            @app.task(on_buried=wrong)  # type: ignore[arg-type]
            def work() -> None: ...

    @app.task
    def other() -> None: ...

    for header in ("", "a\nb"):
        with pytest.raises(InvalidArgument, match="header lonnymq-on-buried must be"):
            other.options(headers={"lonnymq-on-buried": header}).enqueue("acme")
