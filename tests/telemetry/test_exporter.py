"""The exporter, as a process: what it shows, to how many at a time, and what if the database is away."""

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from lonnymq import Queue
from lonnymq.telemetry.http_server import MAX_CONNECTIONS, Page, serve_http
from tests.cli.conftest import runner
from tests.telemetry.scrape import check_with_promtool, eventually, get, running, samples

# What the name of a channel or a cron may contain.
HOSTILE = 'a "quoted" \\n back\\slash {b="c"} 1\u2028\U0001f600'
START = ("exporter", "--port", "0")


@pytest.fixture
def reader(queue: Queue, dsn: str, admin: psycopg.Connection[Any]) -> Iterator[str]:
    """The options of a session of a role that may only read."""
    role = f"reader_of_{conninfo_to_dict(dsn)['dbname']}"
    admin.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
    queue.grant(role, "reader")
    yield f"-c role={role}"
    queue.revoke(role)
    admin.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def test_a_reader_shows_the_queue_and_chosen_channels(queue: Queue, dsn: str, reader: str) -> None:
    queue.enqueue("big", "leased")
    queue.dequeue(lease_s=600)
    for channel, count in ((HOSTILE, 5), ("big", 7), ("other", 1)):
        for number in range(count):
            queue.enqueue(channel, number)
    queue.enqueue("big", "later", delay=3600)
    queue.cron.set(HOSTILE, "* * * * *", channel="crons", payload=1)
    options = ("--top", "1", "--channel", HOSTILE, "--channel", "unused")
    with running(dsn, *START, *options, PGOPTIONS=reader) as exporter:
        answer = get(f"{exporter.url}/metrics")
        assert (answer.status, answer.headers["content-type"][:10]) == (200, "text/plain")
        found = samples(answer.text)
        states = {name: value for (metric, name), value in pairs(found) if metric == "lonnymq_queue_messages"}
        assert states == {"waiting": 13, "scheduled": 1, "leased": 1, "dead": 0}
        assert (found["lonnymq_up",], found["lonnymq_queue_demand",], found["lonnymq_queue_channels",]) == (
            1,
            13,
            3,
        )
        assert found["lonnymq_cron_overdue_seconds", HOSTILE] >= 0
        assert found["lonnymq_table_bytes", "message"] > 0
        assert found["lonnymq_table_dead_rows", "history"] == 0
        waiting = {
            name: value
            for (metric, name), value in pairs(found)
            if metric == "lonnymq_channel_waiting_messages"
        }
        assert waiting == {"big": 8, HOSTILE: 5, "unused": 0}
        assert found["lonnymq_channel_released_total", "big"] == 1
        check_with_promtool(answer.text)
        demand = get(f"{exporter.url}/demand").json
        # The cron has no worker that would have computed its next tick.
        assert (demand["demand"], demand["leased"], demand["due_crons"], demand["work"]) == (13, 1, 1, 15)
        assert get(f"{exporter.url}/nothing").status == 404
        assert get(f"{exporter.url}/metrics", "POST").status == 405
        assert get(f"{exporter.url}/livez").text == "ok\n"
        assert exporter.stop(signal.SIGTERM) == 0
        assert "Traceback" not in "".join(exporter.log)


def pairs(found: dict[tuple[str, ...], float]) -> list[tuple[tuple[str, str], float]]:
    """Return the samples that have one label."""
    return [((key[0], key[1]), value) for key, value in found.items() if len(key) == 2]


@pytest.mark.slow
def test_while_the_database_is_away_nothing_stale_is_shown(
    queue: Queue, dsn: str, admin: psycopg.Connection[Any]
) -> None:
    queue.enqueue("a", 1)
    queue.close()
    database = str(conninfo_to_dict(dsn)["dbname"])
    with running(dsn, *START, "--timeout-s", "2") as exporter:

        def shown() -> dict[tuple[str, ...], float]:
            return samples(get(f"{exporter.url}/metrics").text)

        eventually(lambda: shown().get(("lonnymq_queue_messages", "waiting")) == 1)
        allow_connections(admin, database, allow=False)
        try:
            eventually(lambda: shown() == {("lonnymq_up",): 0.0})
            demand = get(f"{exporter.url}/demand")
            # Without the address of the database, which is in the log.
            told = "the queue cannot be looked at; the exporter's log says why"
            assert (demand.status, demand.json) == (503, {"error": told})
        finally:
            allow_connections(admin, database, allow=True)
        eventually(lambda: shown().get(("lonnymq_queue_messages", "waiting")) == 1)
        # A look that takes too long is ended, by the server itself.
        with psycopg.connect(dsn) as blocker:
            blocker.execute("lock table lonnymq.cron in access exclusive mode")
            eventually(lambda: shown() == {("lonnymq_up",): 0.0})
            waiting = "select count(*) from pg_stat_activity where datname = %s and wait_event_type = 'Lock'"
            eventually(lambda: admin.execute(waiting, (database,)).fetchone() == (0,))
        eventually(lambda: ("lonnymq_queue_messages", "waiting") in shown())
        log = "".join(exporter.log)
        assert exporter.stop(signal.SIGINT) == 0
    # A line when a failure begins and when it ends, however often it is scraped meanwhile.
    assert 2 <= log.count("cannot be looked at") <= log.count("can be looked at again") + 1 <= 6
    assert "Traceback" not in log


def allow_connections(admin: psycopg.Connection[Any], database: str, *, allow: bool) -> None:
    admin.execute(
        sql.SQL("alter database {} allow_connections {}").format(sql.Identifier(database), sql.Literal(allow))
    )
    if not allow:
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (database,)
        )


def test_an_exporter_outlives_many_scrapes_and_hostile_clients(queue: Queue, dsn: str) -> None:
    with running(dsn, *START) as exporter:
        address = urlsplit(exporter.url)
        assert address.hostname
        assert address.port
        held = [
            socket.create_connection((address.hostname, address.port)) for _ in range(MAX_CONNECTIONS - 8)
        ]
        for request in (b"\r\n\r\n", b"GET /" + b"x" * 20_000, b"\xff\xfe\r\n\r\n", b"GET /metrics\r\n\r\n"):
            with socket.create_connection((address.hostname, address.port)) as client:
                client.sendall(request)
                assert client.recv(100).startswith(b"HTTP/1.1 400 ")
        with ThreadPoolExecutor(8) as scrapers:
            answers = list(scrapers.map(lambda _: get(f"{exporter.url}/metrics"), range(40)))
        assert {one.status for one in answers} == {200}
        more = [socket.create_connection((address.hostname, address.port)) for _ in range(16)]
        # Those that send nothing are closed, the oldest at once if there are too many.
        for silent in (held[0], more[-1]):
            assert silent.recv(1) == b""
        for client in held + more:
            client.close()
        assert get(f"{exporter.url}/livez").status == 200
        assert "Traceback" not in "".join(exporter.log)
        connections = "select count(*) from pg_stat_activity where datname = current_database()"
        with psycopg.connect(dsn) as connection:
            assert connection.execute(connections).fetchone() == (2,)


def test_silent_connections_do_not_end_a_scrape_and_a_fault_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        may_answer = asyncio.Event()

        async def answer(method: str, path: str, headers: Mapping[str, str]) -> Page:
            await may_answer.wait()
            if path == "/fault":
                raise ValueError("not for strangers")
            return Page(200, b"ok\n")

        async def ask(port: int, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            opened.append(await asyncio.open_connection("127.0.0.1", port))
            opened[-1][1].write(request)
            return opened[-1]

        opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        async with serve_http(answer, "127.0.0.1", 0) as (_, port):
            scrape, _ = await ask(port, b"GET / HTTP/1.1\r\n\r\n")
            silent = [await ask(port, b"") for _ in range(2 * MAX_CONNECTIONS)]
            # The oldest of the silent ones have been closed.
            with suppress(ConnectionResetError):
                assert await silent[0][0].read() == b""
            may_answer.set()
            assert (await scrape.read()).startswith(b"HTTP/1.1 200 ")
            fault = await (await ask(port, b"GET /fault HTTP/1.1\r\n\r\n"))[0].read()
            assert fault.startswith(b"HTTP/1.1 500 ")
            assert b"strangers" not in fault
        for _, writer in opened:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    asyncio.run(scenario())
    assert [one.name for one in caplog.records if one.levelname == "ERROR"] == ["lonnymq.http"]


def test_wrong_options_are_refused(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (("--port", "65536"), ("--top", "101"), ("--channel", ""), ("--channel", "a\nb")):
        assert runner(dsn)("exporter", *wrong).code == 2
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = runner(dsn)("exporter", "--port", str(taken.getsockname()[1]))
        assert (result.code, "address already in use" in result.error_text) == (2, True)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    result = runner(dsn)("exporter")
    assert (result.code, 'the extra "prometheus"' in result.error_text) == (2, True)


PROMETHEUS_CONFIG = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: lonnymq
    static_configs: [{{targets: ["{target}"]}}]
"""


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Debian's package prometheus")
def test_a_real_prometheus_scrapes_the_exporter(queue: Queue, dsn: str, tmp_path: Path) -> None:
    for number in range(3):
        queue.enqueue(HOSTILE, number)
    with (
        running(dsn, *START, "--channel", HOSTILE) as exporter,
        socket.create_server(("127.0.0.1", 0)) as free,
    ):
        port = free.getsockname()[1]
        free.close()
        config = tmp_path / "prometheus.yaml"
        config.write_text(PROMETHEUS_CONFIG.format(target=urlsplit(exporter.url).netloc))
        command = [
            *("prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"),
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (tmp_path / "log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log)
        try:

            def query(name: str) -> Any:
                assert server.poll() is None, (tmp_path / "log").read_text()
                try:
                    return get(f"http://127.0.0.1:{port}/api/v1/query?query={name}").json["data"]["result"]
                except (OSError, KeyError, ValueError):
                    return None

            [waiting] = eventually(lambda: query("lonnymq_channel_waiting_messages"))
            assert (waiting["metric"]["channel"], waiting["value"][1]) == (HOSTILE, "3")
            [up] = query("lonnymq_up")
            assert up["value"][1] == "1"
        finally:
            server.kill()
            server.wait()
