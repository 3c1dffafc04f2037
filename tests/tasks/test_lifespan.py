"""What a worker process opens before its first message and closes after its last one."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lonnymq import App, ExitCode, InvalidArgument, LonnyError, Queue
from lonnymq.testing import run_until_empty
from tests.tasks.test_app import is_empty, work
from tests.worker.workers import eventually


def test_handlers_use_what_the_lifespan_has_opened(queue: Queue, dsn: str) -> None:
    app = App(dsn)
    events: list[Any] = []

    @app.lifespan
    async def open_client() -> AsyncIterator[str]:
        events.append("open")
        try:
            yield "client"
        finally:
            events.append("close")

    @app.task
    def in_thread(n: int) -> None:
        events.append((n, app.resources))

    @app.task
    async def on_loop(n: int) -> None:
        events.append((n, app.resources))

    in_thread.enqueue("acme", 1)
    on_loop.enqueue("acme", 2)
    work(app, is_empty(queue))
    assert sorted(events[1:3]) == [(1, "client"), (2, "client")]
    assert [events[0], *events[3:]] == ["open", "close"]
    in_thread.enqueue("acme", 3)
    run_until_empty(app)
    assert events[4:] == ["open", (3, "client"), "close"]
    with pytest.raises(LonnyError, match="only in a worker"):
        app.resources  # noqa: B018
    app.clients.close()


def test_a_worker_whose_lifespan_fails_processes_nothing(
    queue: Queue, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App(dsn)

    @app.lifespan
    async def open_client() -> AsyncIterator[None]:
        if app.tasks:
            raise OSError("no such host")
        yield

    @app.task
    def never() -> None: ...

    never.enqueue("acme")
    assert app.worker().run() == ExitCode.FAILED
    assert "no such host" in caplog.text
    assert queue.status().waiting == 1
    app.clients.close()


def test_every_process_of_a_worker_has_a_lifespan_of_its_own(
    queue: Queue, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spans.py").write_text(
        "import os, lonnymq\n"
        "app = lonnymq.App()\n"
        "@app.lifespan\n"
        "async def note():\n"
        "    print('open', os.getpid(), flush=True)\n"
        "    yield os.getpid()\n"
        "    print('close', os.getpid(), flush=True)\n"
        "@app.task\n"
        "def check(n: int) -> None:\n"
        "    assert app.resources == os.getpid()\n"
    )
    for n in range(10):
        queue.enqueue("acme", {"task": "check", "arguments": {"n": n}})
    log = tmp_path / "log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            # The module has one app, so its name is not needed.
            [sys.executable, "-m", "lonnymq", "work", "spans", "--processes", "2"],
            cwd=tmp_path,
            env={**os.environ, "LONNYMQ_DSN": dsn},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            eventually(lambda: queue.status().waiting + queue.status().leased == 0)
            eventually(lambda: log.read_text().count("open") == 2)
        finally:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(60) == ExitCode.FINISHED
    text = log.read_text()
    opened = {line.split()[1] for line in text.splitlines() if line.startswith("open")}
    closed = {line.split()[1] for line in text.splitlines() if line.startswith("close")}
    assert opened == closed
    assert len(opened) == 2
    assert queue.dead().list() == []


def test_a_wrong_lifespan_is_refused() -> None:
    app: Any = App("dbname=nobody")

    async def returns_nothing() -> None: ...

    async def yields() -> AsyncIterator[None]:
        yield

    for wrong in (returns_nothing, 5):
        with pytest.raises(InvalidArgument, match="lifespan must be an async generator"):
            app.lifespan(wrong)
    app.lifespan(yields)
    with pytest.raises(InvalidArgument, match="declared once"):
        app.lifespan(yields)
