"""Where a client connects without a DSN, and that it never shows the password of one."""

import asyncio
import inspect
import subprocess
import sys
from typing import Any

import pytest
from psycopg import conninfo

import lonnymq
from lonnymq import AsyncQueue, ClientSettings, ConnectionLost, InvalidArgument, Queue, Worker
from tests.client.conftest import OpenQueue
from tests.conftest import Connect, Database

PASSWORD = "s3cret%2Fhidden"
SECRET = f"postgresql://ann:{PASSWORD}@db.example:5433/shop"
HIDDEN = ("s3cret", "hidden")


def test_without_a_dsn_lonnymq_dsn_is_used(
    dsn: str, open_queue: OpenQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONNYMQ_DSN", dsn)
    # It takes precedence over these.
    monkeypatch.setenv("PGHOST", "/nowhere")
    monkeypatch.setenv("PGDATABASE", "nowhere")
    queue = open_queue("")
    queue.install()
    assert queue.enqueue("a", 1).outcome == "created"
    with Queue() as other:
        assert other.status().waiting == 1


def test_without_a_dsn_and_lonnymq_dsn_libpqs_variables_are_used(
    dsn: str, open_queue: OpenQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONNYMQ_DSN", "")
    names = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER"}
    for name, value in conninfo.conninfo_to_dict(dsn).items():
        if name in names:
            monkeypatch.setenv(names[name], str(value))
    assert open_queue("").enqueue("a", 1).outcome == "created"


def test_the_schema_can_come_from_the_environment(
    database: Database, open_queue: OpenQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONNYMQ_SCHEMA", "other")
    queue = open_queue(database(is_empty=True))
    assert queue.install().schema == "other"
    assert Worker("dbname=x", print).clients.schema == "other"
    assert Queue(schema="mine").schema == "mine"
    monkeypatch.setenv("LONNYMQ_SCHEMA", "")
    assert Queue().schema == "lonnymq"


def test_a_worker_without_a_dsn_uses_the_queue_of_the_environment(dsn: str, connect: Connect) -> None:
    program = (
        "import lonnymq, os\n"
        "lonnymq.Queue().enqueue('a', 1)\n"
        "worker = lonnymq.Worker('', lambda message: worker.stop())\n"
        "raise SystemExit(worker.run())\n"
    )
    environment = {"LONNYMQ_DSN": dsn, "PGHOST": "/nowhere", "PATH": ""}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    assert connect().execute("select count(*) from message").fetchone() == (0,)


def test_reprs_of_clients_contain_no_password() -> None:
    async def reprs() -> list[str]:
        things: list[Any] = []
        for queue in (Queue(SECRET), AsyncQueue(SECRET)):
            things += [queue, queue.channel("a"), queue.dead(), queue.dead("a"), queue.cron, queue.history]
            things += [queue.caller, queue.caller.source, lonnymq.App(queue), Worker(queue, print)]
        things.append(Worker(SECRET, print))
        return [repr(thing) for thing in things]

    texts = asyncio.run(reprs())
    for text in texts:
        assert not any(word in text for word in HIDDEN)
    # They also say which queue it is.
    assert "schema='lonnymq' host=db.example port=5433 dbname=shop user=ann" in texts[0]


@pytest.mark.parametrize(
    "wrong", [SECRET.encode(), ["host=x", PASSWORD], f"postgresql://ann:p@{PASSWORD}@db/x"], ids=type
)
def test_errors_about_a_dsn_do_not_show_it(wrong: Any) -> None:
    for take in (Queue, AsyncQueue, lambda it: lonnymq.App(it)):
        if take not in (Queue, AsyncQueue) and isinstance(wrong, str):
            continue
        with pytest.raises(InvalidArgument) as caught:
            take(wrong)
        assert not any(word in repr(caught.value) for word in HIDDEN)


def test_the_error_for_an_unreachable_server_hides_the_password(open_queue: OpenQueue) -> None:
    queue = open_queue(
        f"postgresql://ann:{PASSWORD}@127.0.0.1:1/shop", settings=ClientSettings(retry_for_s=0)
    )
    with pytest.raises(ConnectionLost) as caught:
        queue.status()
    chain: BaseException | None = caught.value
    while chain is not None:
        assert not any(word in repr(chain) for word in HIDDEN)
        chain = chain.__cause__


def test_both_clients_take_the_same_arguments() -> None:
    assert [*inspect.signature(Queue).parameters] == [*inspect.signature(AsyncQueue).parameters]
