"""Workers in other languages: the program in Node, and the session of psql on the page about them."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import lonnymq
from tests.examples.pages import ROOT, blocks
from tests.worker.workers import TIMEOUT_S, eventually

PAGE = ROOT / "docs" / "howto" / "other-languages.md"
SESSION = re.compile(r"^```(psql|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = ROOT / "examples" / "node"
INSTALLED = ROOT / "build" / "node"
TABLES = """
create table receipt (order_id bigint, attempt integer);
create table mail (order_id bigint, channel text, traceparent text);
create function fail() returns trigger language plpgsql as $$
begin
  if new.order_id = 13 and new.attempt = 1 then
    raise 'out of paper';
  elsif new.order_id = 99 then
    perform pg_advisory_xact_lock(99);
  end if;
  return new;
end $$;
create trigger fail before insert on receipt for each row execute function fail();
"""
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
Connect = Callable[..., psycopg.Connection[Any]]


@pytest.fixture(scope="session")
def program() -> Path:
    """The program with its dependencies, as npm installs them by the lock."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        pytest.skip("node and npm are not installed: apt-get install nodejs npm")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < (20, 3):
        pytest.skip(f"needs Node 20.3, this is {version.strip()}")
    INSTALLED.mkdir(parents=True, exist_ok=True)
    stamp = INSTALLED / "installed"
    lock = (PROGRAM / "package-lock.json").read_text(encoding="utf-8")
    with (INSTALLED / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        shutil.copytree(PROGRAM, INSTALLED, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
        if not stamp.exists() or stamp.read_text() != lock:
            command = [npm, "ci", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=INSTALLED, capture_output=True, text=True, check=False)
            if done.returncode != 0 and re.search(r"E(NOTFOUND|AI_AGAIN|CONNREFUSED|TIMEDOUT)", done.stderr):
                pytest.skip("npm cannot reach its registry")
            assert done.returncode == 0, done.stderr
            stamp.write_text(lock)
    return INSTALLED


class NodeWorker:
    """The program in a process of its own."""

    def __init__(self, program: Path, dsn: str, log: Path, **settings: str) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                ["node", "app.mjs"], cwd=program, env=environment(dsn, settings), stdout=output, stderr=output
            )

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(TIMEOUT_S) == 0, self.log.read_text()
        assert self.log.read_text().endswith("stopped\n")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def environment(dsn: str, settings: dict[str, str]) -> dict[str, str]:
    """Give the address as libpq's variables, which pg reads too."""
    names = {
        "host": "PGHOST",
        "port": "PGPORT",
        "user": "PGUSER",
        "password": "PGPASSWORD",
        "dbname": "PGDATABASE",
    }
    options = psycopg.conninfo.conninfo_to_dict(dsn)
    return {**os.environ, **{names[key]: str(options[key]) for key in names if options.get(key)}, **settings}


@pytest.fixture
def start(program: Path, dsn: str, tmp_path: Path) -> Iterator[Callable[..., NodeWorker]]:
    started: list[NodeWorker] = []

    def start(**settings: str) -> NodeWorker:
        started.append(NodeWorker(program, dsn, tmp_path / f"{len(started)}.log", **settings))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()


@pytest.fixture
def shop(connect: Connect) -> psycopg.Connection[Any]:
    connection = connect(options="")
    connection.execute(TABLES.encode())
    return connection


def test_the_session_of_psql_prints_what_the_page_says(dsn: str) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed: apt-get install postgresql-client")
    session = SESSION.findall(PAGE.read_text(encoding="utf-8"))
    done = subprocess.run(
        [psql, "--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "-v", "ON_ERROR_STOP=1", "-d", dsn],
        input="".join(text for kind, text in session if kind == "psql"),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed = re.sub(r"(?<=lonnymq_)\w+|(?<=PID )\d+", "…", done.stdout)
    assert printed == "".join(text for kind, text in session if kind == "text")


@pytest.mark.parametrize(("language", "folder"), [("js", "node"), ("go", "go")])
def test_what_the_page_shows_of_a_program_is_in_its_files(language: str, folder: str) -> None:
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "examples" / folder).glob("*.*")]
    shown = blocks(PAGE, language)
    assert shown
    assert [block.line for block in shown if not any(block.code in text for text in files)] == []


def test_the_lock_of_node_names_no_registry() -> None:
    assert "://" not in (PROGRAM / "package-lock.json").read_text(encoding="utf-8")


def order(number: Any, **fields: Any) -> lonnymq.NewMessage:
    return lonnymq.NewMessage(channel="acme", payload={"step": "receipt", "order": number, **fields})


def test_node_processes_messages_from_python(
    start: Callable[..., NodeWorker], shop: psycopg.Connection[Any], queue: lonnymq.Queue
) -> None:
    pad = "x" * 50_000
    queue.enqueue_many([order(number, pad=pad if number < 3 else "") for number in range(10)])
    queue.enqueue("tiny", {"step": "receipt", "order": 10}, headers={"traceparent": TRACE})
    queue.enqueue_many([order(13), order("seven")])
    shop.execute("select lonnymq.message_create('tiny', 'no JSON')")
    worker = start()
    eventually(lambda: shop.execute("select from mail").rowcount == 12, "mails")
    # While it waits, it is woken by messages of others.
    queue.enqueue("late", {"step": "receipt", "order": 14})
    eventually(lambda: shop.execute("select from mail").rowcount == 13, "the last mail")
    eventually(lambda: queue.status().leased == 0, "acknowledgements")
    worker.stop()
    assert shop.execute("select * from receipt where attempt > 1").fetchall() == [(13, 2)]
    assert shop.execute("select * from mail where traceparent <> ''").fetchall() == [(10, "tiny", TRACE)]
    errors = sorted(letter.error or "" for letter in queue.dead().list())
    assert len(errors) == 2
    assert 'Bury: order must be an integer, not "seven"' in errors[0]
    assert "Bury: the content is not JSON" in errors[1]
    assert queue.status().waiting == 0
    assert not shop.execute("select from lonnymq.sleeper").fetchall()


def test_node_stops_after_its_messages_or_gives_them_back(
    start: Callable[..., NodeWorker], shop: psycopg.Connection[Any], connect: Connect, queue: lonnymq.Queue
) -> None:
    blocker = connect()
    for shutdown_ms, left in (("60000", 0), ("1", 1)):
        blocker.execute("select pg_advisory_lock(99)")
        queue.enqueue("acme", {"step": "receipt", "order": 99})
        worker = start(SHUTDOWN_MS=shutdown_ms)
        eventually(lambda: queue.status().leased == 1, "a lease")
        worker.process.send_signal(signal.SIGINT)
        eventually(lambda: "stopping" in worker.log.read_text(), "the signal")  # noqa: B023 - called at once
        if not left:
            blocker.execute("select pg_advisory_unlock(99)")
        assert worker.process.wait(TIMEOUT_S) == 0, worker.log.read_text()
        status = queue.status()
        # Its step is complete, and the next one waits; or it was given back, and no attempt was spent.
        waiting = {"step": "receipt", "order": 99} if left else {"step": "mail", "order": 99}
        assert (status.leased, status.waiting) == (0, 1), worker.log.read_text()
        [message] = queue.dequeue()
        assert (message.payload, message.attempt) == (waiting, 1)
        message.complete()


def test_the_messages_of_a_killed_node_come_back(
    start: Callable[..., NodeWorker], shop: psycopg.Connection[Any], connect: Connect, queue: lonnymq.Queue
) -> None:
    blocker = connect()
    blocker.execute("select pg_advisory_lock(99)")
    queue.enqueue("acme", {"step": "receipt", "order": 99})
    worker = start(LEASE_MS="1500")
    waits = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    eventually(lambda: shop.execute(waits.encode()).rowcount, "an attempt")
    worker.kill()
    # Its transaction does not come to its end, although nobody has noticed that its client is gone.
    blocker.execute("select pg_advisory_unlock(99)")
    start(LEASE_MS="1500")
    eventually(lambda: shop.execute("select from mail").rowcount, "the mail")
    assert shop.execute("select * from receipt").fetchall() == [(99, 2)]
