"""What a worker process opens before its first message and closes after its last one."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lonnymq import App, ExitCode, InvalidArgument, LonnyError, Queue
from lonnymq.testing import run_until_empty
from tests.forked import ForkedProgram
from tests.tasks.test_app import is_empty, work
from tests.worker.workers import TIMEOUT_S, eventually, running_worker


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
    # The module has one app, so its name is not needed.
    command = ("lonnymq", "work", "spans", "--processes", "2")
    worker = ForkedProgram(*command, cwd=tmp_path, env={**os.environ, "LONNYMQ_DSN": dsn}, output=log)
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


def test_two_workers_of_an_app_in_a_process_have_resources_of_their_own(queue: Queue, dsn: str) -> None:
    app = App(dsn)
    seen: list[object] = []

    @app.lifespan
    async def open_client() -> AsyncIterator[object]:
        yield object()

    @app.task
    async def note() -> None:
        seen.append(app.resources)

    async def wait_for_notes(count: int) -> None:
        note_at = len(seen) + count
        for _ in range(count):
            await note.enqueue_async("acme")
        while len(seen) < note_at:  # noqa: ASYNC110 - a worker's handler appends to it
            await asyncio.sleep(0.01)

    async def scenario() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            async with running_worker(app.queue, app):
                await wait_for_notes(1)
                async with running_worker(app.queue, app):
                    # Until both have processed some.
                    while len(set(seen)) < 2:
                        await wait_for_notes(20)
                await wait_for_notes(1)
        await app.clients.close_async()

    asyncio.run(scenario())
    assert seen[-1] is seen[0]
    app.clients.close()


def test_a_worker_can_be_stopped_while_its_lifespan_begins(
    queue: Queue, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text(
        "import asyncio, lonnymq\n"
        "app = lonnymq.App()\n"
        "@app.lifespan\n"
        "async def wait():\n"
        "    print('waiting', flush=True)\n"
        "    await asyncio.sleep(3600)\n"
        "    yield\n"
    )
    for processes in ("1", "2"):
        log = tmp_path / f"log {processes}"
        command = ("lonnymq", "work", "slow", "--processes", processes)
        worker = ForkedProgram(*command, cwd=tmp_path, env={**os.environ, "LONNYMQ_DSN": dsn}, output=log)
        eventually(lambda: log.read_text().count("waiting") == int(processes))  # noqa: B023
        worker.send_signal(signal.SIGTERM)
        # Without being ended by force.
        assert worker.wait(60) == ExitCode.FINISHED


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
