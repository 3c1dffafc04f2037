"""work: worker processes and the signals that stop them."""

import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from psycopg.conninfo import make_conninfo

from lonnymq import Queue
from lonnymq.cli.exit_codes import CommandExit
from tests.cli.conftest import DEADLINE_S, Run, Start

APP = """
import functools
import json
import os
import sys
import lonnymq

app = lonnymq.App(lonnymq.Queue(os.environ["LONNYMQ_DSN"]))

@app.task(max_attempts=1)
def note(word: str) -> None:
    with open("notes.txt", "a") as notes:
        notes.write(f"{word} VERSION {os.getpid()}\\n")

def make_app():
    return app

def handle(message):
    with open("notes.txt", "a") as notes:
        notes.write(f"{message.payload} by hand {os.getpid()}\\n")

def two(first, second): ...

def nothing_to_work(): return 7

def a_task(): return note

def with_a_default(config=None): return app

async def main(): ...

def generate(message):
    yield

class Handle:
    def __call__(self, message): ...

def end(): sys.exit(0)

def fail(): raise KeyError("x" * 10_000)

class Lazy:
    @property
    def app(self): sys.exit(0)

lazy = Lazy()
prepared = note.options(delay=5)
dumped = functools.partial(json.dumps)
broken = 7
hidden = lonnymq.App(app.queue).task(name="hidden")(two)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    return tmp_path


def notes(shop: Path) -> list[list[str]]:
    path = shop / "notes.txt"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def stop(process: Popen[str], number: signal.Signals = signal.SIGTERM) -> str:
    """Stop the worker by a signal, and return its log."""
    process.send_signal(number)
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    return err


def task(word: str) -> dict[str, object]:
    return {"task": "note", "arguments": {"word": word}}


def test_an_app_runs_until_a_signal_stops_it(start: Start, shop: Path, queue: Queue) -> None:
    for number in range(5):
        queue.enqueue("acme", task(f"n{number}"))
    queue.enqueue("acme", {"task": "nobody"})
    worker = start("work", "shop:app", "--name", "tester", "--log-level", "debug", cwd=shop)
    eventually(lambda: (status := queue.status()).dead == 1 and status.waiting + status.leased == 0)
    log = stop(worker)
    assert sorted(word for word, *_ in notes(shop)) == [f"n{number}" for number in range(5)]
    assert log.count("completed message") == 5
    assert "unknown task 'nobody'" in log
    assert "starting on queue 'lonnymq'" in log
    assert all(f"[{worker.pid}]" in line for line in log.splitlines())


def test_each_log_line_names_its_process(start: Start, shop: Path, queue: Queue) -> None:
    worker = start(
        "work",
        "shop:with_a_default",
        "--processes",
        "2",
        "--concurrency",
        "1",
        "--log-level",
        "debug",
        cwd=shop,
    )
    deadline = time.monotonic() + DEADLINE_S
    while len({note[2] for note in notes(shop)}) < 2:
        assert time.monotonic() < deadline, worker.poll()
        queue.enqueue("acme", task("x"))
        time.sleep(0.02)
    log = stop(worker)
    pids = {note[2] for note in notes(shop)}
    for line in log.splitlines():
        assert re.match(r"\S+ \S+ [A-Z]+ +\[\d+\] ", line), line
    completed = {re.search(r"\[(\d+)\]", line)[1] for line in log.splitlines() if "completed" in line}  # type: ignore[index]
    assert completed == pids


def test_a_plain_function_uses_the_queue_of_the_options(start: Start, shop: Path, queue: Queue) -> None:
    queue.enqueue("acme", "hello")
    worker = start("work", "shop:handle", "--log-format", "json", "--concurrency", "2", cwd=shop)
    eventually(lambda: notes(shop) and queue.status().leased == 0)
    log = stop(worker, signal.SIGINT)
    assert notes(shop)[0][:3] == ["hello", "by", "hand"]
    assert log.startswith('{"time": ')


def test_several_processes_work_and_stop_together(start: Start, shop: Path, queue: Queue) -> None:
    worker = start("work", "shop:make_app", "--processes", "2", "--concurrency", "1", cwd=shop)
    # Enqueue until both processes have handled a message.
    deadline = time.monotonic() + DEADLINE_S
    while len({note[2] for note in notes(shop)}) < 2:
        assert time.monotonic() < deadline, worker.poll()
        queue.enqueue("acme", task("x"))
        time.sleep(0.02)
    stop(worker)
    assert str(worker.pid) not in {note[2] for note in notes(shop)}
    assert queue.status().leased == 0


def test_a_changed_file_restarts_the_worker(start: Start, shop: Path, queue: Queue) -> None:
    queue.enqueue("acme", task("first"))
    worker = start("work", "shop:app", "--reload", cwd=shop)
    eventually(lambda: len(notes(shop)) == 1)
    (shop / "shop.py").write_text("oops(")
    assert worker.stderr is not None
    for text in ("shop.py changed: restarting", "SyntaxError"):
        assert any(text in line for line in worker.stderr), text
    queue.enqueue("acme", task("second"))
    (shop / "shop.py").write_text(APP.replace("VERSION", "CHANGED"))
    eventually(lambda: len(notes(shop)) == 2)
    assert [note[:2] for note in notes(shop)] == [["first", "VERSION"], ["second", "CHANGED"]]
    stop(worker)


def test_files_that_python_does_not_import_cause_no_restart(start: Start, shop: Path, queue: Queue) -> None:
    for folder in (".venv", ".git", "__pycache__"):
        (shop / folder).mkdir()
    queue.enqueue("acme", task("first"))
    worker = start("work", "shop:app", "--reload", cwd=shop)
    eventually(lambda: len(notes(shop)) == 1)
    for name in (".venv/ignored.py", ".git/ignored.py", "__pycache__/ignored.py", "ignored.txt"):
        (shop / name).write_text("VERSION = 2")
    # Changes are reported in order, so only this one may be reported.
    (shop / "seen.py").write_text("VERSION = 2")
    assert worker.stderr is not None
    logged = next(line for line in worker.stderr if "restarting" in line)
    assert logged.strip() == "seen.py changed: restarting"
    stop(worker)


def test_reload_without_watchfiles_names_the_extra(lonnymq: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    answer = lonnymq("work", "shop:app", "--reload")
    assert answer.code == 2
    assert answer.error_text.startswith(
        'error: --reload needs watchfiles install lonnymq with the extra "cli"'
    )


def test_a_reloading_worker_stops_when_its_parent_is_killed(start: Start, shop: Path, queue: Queue) -> None:
    queue.enqueue("acme", task("first"))
    worker = start("work", "shop:app", "--reload", cwd=shop)
    eventually(lambda: len(notes(shop)) == 1)
    worker.kill()
    # The worker's child process holds the other end of this pipe until it ends.
    worker.communicate(timeout=DEADLINE_S)


INVALID_TARGETS = [
    ("bare", "'bare' must be module:attribute, for example bare:app; the module has no App"),
    ("shop.py", "'shop.py' is a file; write shop:app"),
    ("bare", "for example bare:app; the module has no App, Worker or Handler"),
    (":app", "must be module:attribute, for example shop.tasks:app"),
    ("nowhere:app", "there is no module 'nowhere'"),
    ("shop:nothing", "module 'shop' has no attribute 'nothing'; did you mean shop:app"),
    ("bare:app", "module 'bare' has no attribute 'app'"),
    ("shop.app", "there is no module 'shop.app'; did you mean shop:app?"),
    ("shop.nothing", "there is no module 'shop.nothing' in the working directory or on Python's path"),
    ("shop:broken", "must be an App, a Worker, a Handler"),
    ("shop:note", "shop:note is a task of the App shop:app; run `lonnymq work shop:app`"),
    ("shop:a_task", "shop:a_task() is a task of the App shop:app; run `lonnymq work shop:app`"),
    ("shop:hidden", "shop:hidden is a task; run the App it belongs to"),
    ("shop:two", "takes one argument, the message; this one takes (first, second)"),
    ("shop:main", "an async function that takes no message"),
    ("shop:nothing_to_work", "must return an App, a Worker or a Handler; it returned 7"),
    ("shop:generate", "not a generator"),
    ("shop:Handle", "must be an App, a Worker, a Handler"),
    ("shop:os", "must be an App, a Worker, a Handler"),
    ("shop:app.queue", "must be an App, a Worker, a Handler"),
    ("sys:exit", "defined by your program; this one belongs to Python"),
    ("bdb:set_trace", "defined by your program; this one belongs to Python"),
    ("builtins:print", "defined by your program; this one belongs to Python"),
    ("os:environ.clear", "defined by your program; this one belongs to Python"),
    ("shop:dumped", "defined by your program; this one belongs to Python"),
    ("shop:app.queue.uninstall", "defined by your program; this one belongs to lonnymq"),
    ("shop:note.enqueue", "shop:note.enqueue is a task of the App shop:app; run `lonnymq work shop:app`"),
    ("shop:prepared.enqueue", "is a task of the App shop:app"),
    ("shop:end", "shop:end() failed: SystemExit: 0"),
    ("shop:fail", "shop:fail() failed: KeyError"),
    ("shop:lazy.app", "looking up 'shop:lazy.app' failed: SystemExit: 0"),
    ("ending:app", "importing 'ending' failed: SystemExit: 0"),
    ("failing:app", "importing 'failing' failed: ZeroDivisionError: division by zero"),
    ("needing:app", "importing 'needing' failed: ModuleNotFoundError: No module named 'absent'"),
    ("garbled:app", "importing 'garbled' failed: SyntaxError"),
]


def test_an_invalid_target_is_refused(lonnymq: Run, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop / "ending.py").write_text("raise SystemExit(0)")
    (shop / "failing.py").write_text("x = 1 / 0")
    (shop / "needing.py").write_text("import absent")
    (shop / "garbled.py").write_text("def")
    (shop / "bare.py").write_text("x = 1")
    monkeypatch.chdir(shop)
    monkeypatch.syspath_prepend(shop)
    monkeypatch.setenv("LONNYMQ_DSN", "")
    lonnymq("enqueue", "acme", "1")
    for target, error in INVALID_TARGETS:
        result = lonnymq("work", target)
        assert result.code == CommandExit.USAGE, target
        assert error in result.error_text
    assert lonnymq("status", "--json").json["waiting"] == 1


def test_a_module_may_share_its_name_with_one_of_pythons(
    shell: Run, shop: Path, dsn: str, queue: Queue
) -> None:
    (shop / "code.py").write_text(APP)
    result = shell("work", "code:make_app", cwd=shop, LONNYMQ_DSN=make_conninfo(dsn, dbname="nowhere"))
    assert result.code == CommandExit.UNREACHABLE
    assert "the queue cannot be used" in result.err


def test_a_missing_database_stops_the_worker(shell: Run, shop: Path, dsn: str) -> None:
    result = shell("work", "shop:app", cwd=shop, LONNYMQ_DSN=make_conninfo(dsn, dbname="nowhere"))
    assert result.code == CommandExit.UNREACHABLE
    assert "the queue cannot be used" in result.err
    assert "Traceback" not in result.err


def test_queue_options_are_refused_for_an_app(shell: Run, shop: Path, dsn: str) -> None:
    result = shell("work", "shop:app", "--dsn", dsn, cwd=shop)
    assert result.code == CommandExit.USAGE
    assert "a queue of its own" in " ".join(result.err.split())
