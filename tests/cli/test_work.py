"""work: real processes, real signals."""

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
from lonnymq.cli.exits import Exit
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


def ended(process: Popen[str], number: signal.Signals = signal.SIGTERM) -> str:
    """Ask it to stop, and return its log."""
    process.send_signal(number)
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    return err


def task(word: str) -> dict[str, object]:
    return {"task": "note", "arguments": {"word": word}}


def test_an_app_is_worked_until_a_signal_comes(start: Start, shop: Path, queue: Queue) -> None:
    for number in range(5):
        queue.enqueue("acme", task(f"n{number}"))
    queue.enqueue("acme", {"task": "nobody"})
    worker = start("work", "shop:app", "--name", "tester", "--log-level", "debug", cwd=shop)
    eventually(lambda: queue.status().dead == 1 and queue.status().waiting + queue.status().leased == 0)
    log = ended(worker)
    assert sorted(word for word, *_ in notes(shop)) == [f"n{number}" for number in range(5)]
    assert log.count("completed message") == 5
    assert "unknown task 'nobody'" in log
    assert "starting on queue 'lonnymq'" in log
    assert all(f"[{worker.pid}]" in line for line in log.splitlines())


def test_each_line_says_which_process_wrote_it(start: Start, shop: Path, queue: Queue) -> None:
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
    log = ended(worker)
    written = {note[2] for note in notes(shop)}
    for line in log.splitlines():
        assert re.match(r"\S+ \S+ [A-Z]+ +\[\d+\] ", line), line
    completed = {re.search(r"\[(\d+)\]", line)[1] for line in log.splitlines() if "completed" in line}  # type: ignore[index]
    assert completed == written


def test_a_function_is_worked_with_the_queue_of_the_options(start: Start, shop: Path, queue: Queue) -> None:
    queue.enqueue("acme", "hello")
    worker = start("work", "shop:handle", "--log-format", "json", "--concurrency", "2", cwd=shop)
    eventually(lambda: notes(shop) and queue.status().leased == 0)
    log = ended(worker, signal.SIGINT)
    assert notes(shop)[0][:3] == ["hello", "by", "hand"]
    assert log.startswith('{"time": ')


def test_several_processes_work_and_end_together(start: Start, shop: Path, queue: Queue) -> None:
    worker = start("work", "shop:make_app", "--processes", "2", "--concurrency", "1", cwd=shop)
    # Whoever is first must not get all: more come until both have had some.
    deadline = time.monotonic() + DEADLINE_S
    while len({note[2] for note in notes(shop)}) < 2:
        assert time.monotonic() < deadline, worker.poll()
        queue.enqueue("acme", task("x"))
        time.sleep(0.02)
    ended(worker)
    assert str(worker.pid) not in {note[2] for note in notes(shop)}
    assert queue.status().leased == 0


def test_a_changed_file_starts_the_worker_again(start: Start, shop: Path, queue: Queue) -> None:
    queue.enqueue("acme", task("first"))
    worker = start("work", "shop:app", "--reload", cwd=shop)
    eventually(lambda: len(notes(shop)) == 1)
    (shop / "shop.py").write_text("oops(")
    assert worker.stderr is not None
    for words in ("shop.py changed: starting again", "SyntaxError"):
        assert any(words in line for line in worker.stderr), words
    queue.enqueue("acme", task("second"))
    (shop / "shop.py").write_text(APP.replace("VERSION", "CHANGED"))
    eventually(lambda: len(notes(shop)) == 2)
    assert [note[:2] for note in notes(shop)] == [["first", "VERSION"], ["second", "CHANGED"]]
    ended(worker)


def test_changes_that_python_does_not_import_start_nothing(start: Start, shop: Path, queue: Queue) -> None:
    for folder in (".venv", ".git", "__pycache__"):
        (shop / folder).mkdir()
    queue.enqueue("acme", task("first"))
    worker = start("work", "shop:app", "--reload", cwd=shop)
    eventually(lambda: len(notes(shop)) == 1)
    for name in (".venv/ignored.py", ".git/ignored.py", "__pycache__/ignored.py", "ignored.txt"):
        (shop / name).write_text("VERSION = 2")
    # Changes are reported in order: what comes first is this one.
    (shop / "seen.py").write_text("VERSION = 2")
    assert worker.stderr is not None
    told = next(line for line in worker.stderr if "starting again" in line)
    assert told.strip() == "seen.py changed: starting again"
    ended(worker)


def test_without_watchfiles_reload_names_the_extra(lonnymq: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    answer = lonnymq("work", "shop:app", "--reload")
    assert answer.code == 2
    assert answer.trouble.startswith('error: --reload needs watchfiles install lonnymq with its extra "cli"')


def test_a_worker_under_reload_ends_with_its_parent(start: Start, shop: Path, queue: Queue) -> None:
    queue.enqueue("acme", task("first"))
    worker = start("work", "shop:app", "--reload", cwd=shop)
    eventually(lambda: len(notes(shop)) == 1)
    worker.kill()
    # Its child holds the other end of this pipe.
    worker.communicate(timeout=DEADLINE_S)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("shop", "'shop' must be module:attribute, so write shop:app"),
        ("shop.py", "'shop.py' is a file: write shop:app"),
        ("bare", "such as bare:app; the module has neither an App, nor a Worker, nor a Handler"),
        (":app", "must be module:attribute, such as shop.tasks:app"),
        ("nowhere:app", "there is no module 'nowhere'"),
        ("shop:nothing", "module 'shop' has no 'nothing'; did you mean shop:app"),
        ("bare:app", "module 'bare' has no 'app'"),
        ("shop.app", "there is no module 'shop.app'; did you mean shop:app?"),
        ("shop.nothing", "there is no module 'shop.nothing', here or in Python's path"),
        ("shop:broken", "must be an App, a Worker, a Handler"),
        ("shop:note", "shop:note is a task of app shop:app; run `lonnymq work shop:app`"),
        ("shop:a_task", "shop:a_task() is a task of app shop:app; run `lonnymq work shop:app`"),
        ("shop:hidden", "shop:hidden is a task; run the App that it belongs to"),
        ("shop:two", "takes one argument, the message; this one takes (first, second)"),
        ("shop:main", "an async function that takes no message"),
        ("shop:nothing_to_work", "must return an App, a Worker or a Handler, it returned 7"),
        ("shop:generate", "not a generator"),
        ("shop:Handle", "must be an App, a Worker, a Handler"),
        ("shop:os", "must be an App, a Worker, a Handler"),
        ("shop:app.queue", "must be an App, a Worker, a Handler"),
        ("sys:exit", "of your own; this one is Python's"),
        ("bdb:set_trace", "of your own; this one is Python's"),
        ("builtins:print", "of your own; this one is Python's"),
        ("os:environ.clear", "of your own; this one is Python's"),
        ("shop:dumped", "of your own; this one is Python's"),
        ("shop:app.queue.uninstall", "of your own; this one is lonnymq's"),
        ("shop:note.enqueue", "shop:note.enqueue is a task of app shop:app; run `lonnymq work shop:app`"),
        ("shop:prepared.enqueue", "is a task of app shop:app"),
        ("shop:end", "shop:end() failed: SystemExit: 0"),
        ("shop:fail", "shop:fail() failed: KeyError"),
        ("shop:lazy.app", "looking up 'shop:lazy.app' failed: SystemExit: 0"),
        ("ending:app", "importing 'ending' failed: SystemExit: 0"),
        ("failing:app", "importing 'failing' failed: ZeroDivisionError: division by zero"),
        ("needing:app", "importing 'needing' failed: ModuleNotFoundError: No module named 'absent'"),
        ("garbled:app", "importing 'garbled' failed: SyntaxError"),
    ],
)
def test_what_cannot_be_worked_is_refused(
    lonnymq: Run, shop: Path, monkeypatch: pytest.MonkeyPatch, target: str, words: str
) -> None:
    (shop / "ending.py").write_text("raise SystemExit(0)")
    (shop / "failing.py").write_text("x = 1 / 0")
    (shop / "needing.py").write_text("import absent")
    (shop / "garbled.py").write_text("def")
    (shop / "bare.py").write_text("x = 1")
    monkeypatch.chdir(shop)
    monkeypatch.syspath_prepend(shop)
    monkeypatch.setenv("LONNYMQ_DSN", "")
    lonnymq("enqueue", "acme", "1")
    ended = lonnymq("work", target)
    assert ended.code == Exit.USAGE
    assert words in ended.trouble
    assert lonnymq("status", "--json").json["waiting"] == 1


def test_a_module_may_have_the_name_of_one_of_pythons(shell: Run, shop: Path, dsn: str, queue: Queue) -> None:
    (shop / "code.py").write_text(APP)
    ended = shell("work", "code:make_app", cwd=shop, LONNYMQ_DSN=make_conninfo(dsn, dbname="nowhere"))
    assert ended.code == Exit.UNREACHABLE
    assert "the queue cannot be used" in ended.err


def test_a_database_that_does_not_exist_ends_the_worker(shell: Run, shop: Path, dsn: str) -> None:
    ended = shell("work", "shop:app", cwd=shop, LONNYMQ_DSN=make_conninfo(dsn, dbname="nowhere"))
    assert ended.code == Exit.UNREACHABLE
    assert "the queue cannot be used" in ended.err
    assert "Traceback" not in ended.err


def test_a_queue_is_not_given_twice(shell: Run, shop: Path, dsn: str) -> None:
    ended = shell("work", "shop:app", "--dsn", dsn, cwd=shop)
    assert ended.code == Exit.USAGE
    assert "a queue of its own" in " ".join(ended.err.split())
