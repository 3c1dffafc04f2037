"""Probes, systemd and metrics, of real processes that hang, stop, die and lose their database."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lonnymq import AsyncQueue, ClientSettings, ConnectionLost, ExitCode, Queue
from lonnymq.connections import outage
from lonnymq.embedded import EmbeddedServer
from tests.cli.conftest import environment
from tests.forked import ForkedProgram
from tests.worker.workers import TIMEOUT_S, eventually, running_worker

pytestmark = pytest.mark.fault

PROGRAM = """
import asyncio, os, pathlib, sys, time
import lonnymq

def wait_in_thread(message):
    while not pathlib.Path("go-" + message.payload).exists():
        time.sleep(0.02)

async def wait_on_loop(message):
    while not pathlib.Path("go-" + message.payload).exists():
        await asyncio.sleep(0.02)

async def block_loop(message):
    wait_in_thread(message)

HANDLERS = {
    "hang": lonnymq.Handler(call=wait_in_thread, timeout=0.2, max_attempts=1),
    "wait": lonnymq.Handler(call=wait_on_loop),
    "block": lonnymq.Handler(call=block_loop),
}

class Routes:
    def route(self, message):
        return HANDLERS[message.payload]

if "WITHOUT_PROMETHEUS" in os.environ:
    sys.modules["prometheus_client"] = None

worker = lonnymq.Worker("", Routes())
"""


class Probed:
    """A worker with a port for probes, whose handlers wait until the test releases them."""

    def __init__(self, dsn: str, path: Path, *arguments: str, **more: str) -> None:
        (path / "probed.py").write_text(PROGRAM)
        self.path = path
        self._log = path / "log"
        self.environment = environment(dsn, **more)
        command = ("lonnymq", "work", "probed:worker", "--health-port", "0", "--prefetch", "0")
        self.process = ForkedProgram(*command, *arguments, cwd=path, env=self.environment, output=self._log)
        self.url = eventually(self._find_url, "the port for probes")

    def _find_url(self) -> str:
        assert self.process.poll() is None, self.log_text()
        found = re.search(r"health at (http://\S+)/livez", self.log_text())
        return found[1] if found else ""

    def log_text(self) -> str:
        return self._log.read_text()

    def ask(self, path: str, timeout_s: float = 60.0, method: str = "GET") -> tuple[int, str]:
        try:
            request = urllib.request.Request(self.url + path, method=method)
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def wait_for(self, path: str, status: int, pattern: str = "") -> None:
        def is_answered() -> bool:
            found = self.ask(path)
            return found[0] == status and re.search(pattern, found[1]) is not None

        eventually(is_answered, f"{path} to answer {status} {pattern!r}, not {self.ask(path)}")

    def run_health(self, *arguments: str) -> tuple[int, str]:
        """Run the command for probes, and return its exit code and output."""
        port = self.url.rpartition(":")[2]
        done = subprocess.run(
            [sys.executable, "-m", "lonnymq", "health", *arguments],
            env={**self.environment, "LONNYMQ_HEALTH_PORT": port},
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        assert done.stderr == ""
        return done.returncode, done.stdout.strip()

    def release(self, payload: str) -> None:
        (self.path / f"go-{payload}").touch()

    def metric(self, name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.ask("/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else -1.0


Start = Callable[..., Probed]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Probed] = []

    def start(dsn: str, *arguments: str, **more: str) -> Probed:
        started.append(Probed(dsn, tmp_path, *arguments, **more))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def test_a_process_that_hangs_or_stops_is_not_alive(queue: Queue, dsn: str, start: Start) -> None:
    name = f"lonnymq-test-{os.getpid()}-{id(queue)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{name}")
        systemd.settimeout(TIMEOUT_S)
        notified: list[str] = []

        def is_notified(state: str) -> bool:
            while state not in notified:
                notified.append(systemd.recv(1000).decode())
            return True

        worker = start(
            *(dsn, "--concurrency", "1", "--lease-s", "1.5"),
            NOTIFY_SOCKET=f"@{name}",
            WATCHDOG_USEC="60000000",
        )
        # An empty queue is ready.
        worker.wait_for("/readyz", 200)
        assert worker.ask("/livez") == (200, "ok\n")
        assert is_notified("READY=1")
        assert is_notified("STATUS=working")
        assert worker.run_health() == (0, "ok")
        assert worker.run_health("--ready", "--json") == (0, '{"is_healthy": true, "answer": "ok"}')
        assert worker.metric('lonnymq_worker_slots{state="free"}') == 1
        assert [worker.ask(path, method=method)[0] for path, method in [("/", "POST"), ("/x", "GET")]] == [
            *(405, 404)
        ]
        for request in (b"\r\n\r\n", b"GET /livez HTTP/1.1\r\nx: " + b"x" * 100_000):
            with socket.create_connection(("127.0.0.1", int(worker.url.rpartition(":")[2]))) as client:
                client.sendall(request)
                assert client.recv(100).startswith(b"HTTP/1.1 400 ")

        # Nor do those who connect and ask nothing keep out a probe.
        address = ("127.0.0.1", int(worker.url.rpartition(":")[2]))
        idle = [socket.create_connection(address) for _ in range(200)]
        assert worker.ask("/livez") == (200, "ok\n")
        for client in idle:
            client.close()

        queue.enqueue("a", "block")
        worker.wait_for("/livez", 503, r"^the event loop has been blocked for \d+ s$")
        assert worker.ask("/readyz")[0] == 503
        worker.release("block")
        worker.wait_for("/livez", 200)
        worker.wait_for("/readyz", 200)

        queue.enqueue("a", "hang")
        worker.wait_for("/livez", 503, "all 1 slots have handlers that run long after their time limit")
        code, line = worker.run_health()
        assert (code, line[:11]) == (1, "all 1 slots")
        notified.clear()
        assert is_notified("STATUS=all 1 slots have handlers that run long after their time limit")
        assert "WATCHDOG=1" not in notified[notified.index("STATUS=" + line) :]
        worker.release("hang")
        worker.wait_for("/readyz", 200)
        assert is_notified("WATCHDOG=1")

        worker.process.send_signal(signal.SIGSTOP)
        code, line = worker.run_health("--timeout-s", "1")
        assert (code, line[:15]) == (1, "no answer from ")
        worker.process.send_signal(signal.SIGCONT)
        worker.wait_for("/readyz", 200)

        # A handler may run for any time if it has no limit, also while the worker drains.
        queue.enqueue("a", "wait")
        eventually(lambda: queue.workers() and queue.workers()[0].busy)
        queue.drain_workers(None)
        worker.wait_for("/readyz", 503, "^stopping$")
        assert worker.ask("/livez") == (200, "ok\n")
        assert is_notified("STOPPING=1")
        worker.release("wait")
        assert worker.process.wait(TIMEOUT_S) == ExitCode.FINISHED
        assert worker.run_health()[0] == 1


@pytest.mark.slow
def test_a_worker_waits_alive_for_its_database_and_ends_if_the_schema_is_too_new(
    own_server: Callable[..., EmbeddedServer], start: Start
) -> None:
    server = own_server(fsync=False)
    with Queue(server.dsn) as queue:
        queue.install()
    # Probes need no extra.
    worker = start(server.dsn, WITHOUT_PROMETHEUS="1")
    worker.wait_for("/readyz", 200)
    assert worker.ask("/metrics")[0] == 404
    server.kill()
    worker.wait_for("/readyz", 503, "^the database cannot be reached$")
    assert worker.ask("/livez") == (200, "ok\n")
    server.start()
    worker.wait_for("/readyz", 200)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("comment on table lonnymq.migration is 'lonnymq later 99 99'")
    server.restart()
    assert worker.process.wait(TIMEOUT_S) == ExitCode.UNUSABLE


def test_a_supervisor_answers_for_all_its_processes(queue: Queue, dsn: str, start: Start) -> None:
    fleet = start(dsn, "--processes", "2", "--concurrency", "1")
    fleet.wait_for("/readyz", 200)
    assert fleet.metric("lonnymq_worker_processes") == 2
    assert fleet.metric('lonnymq_worker_slots{state="free"}') == 2
    for payload in ("wait", "wait"):
        queue.enqueue("a", payload)
    fleet.release("wait")
    completed = 'lonnymq_worker_attempts_total{outcome="completed",task="wait_on_loop"}'
    eventually(lambda: fleet.metric(completed) == 2, "both attempts are counted")

    first, second = sorted(one.pid for one in queue.workers())
    os.kill(first, signal.SIGSTOP)
    fleet.wait_for("/livez", 503, rf"^process {first}: no sign of life for \d+ s$")
    # What it had said before still counts, and what it does now is unknown.
    assert fleet.metric(completed) == 2
    assert fleet.metric("lonnymq_worker_processes") == 1
    os.kill(first, signal.SIGCONT)
    fleet.wait_for("/livez", 200)
    fleet.wait_for("/readyz", 200)

    os.kill(second, signal.SIGKILL)
    fleet.wait_for("/readyz", 503)
    fleet.wait_for("/livez", 200)
    fleet.wait_for("/readyz", 200)
    assert fleet.metric(completed) == 2
    fleet.process.send_signal(signal.SIGTERM)
    assert fleet.process.wait(TIMEOUT_S) == ExitCode.FINISHED


def test_a_port_that_is_taken_is_named(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "probed.py").write_text(PROGRAM)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
        done = subprocess.run(
            [sys.executable, "-m", "lonnymq", "work", "probed:worker", "--health-port", port],
            **{"cwd": tmp_path, "env": environment(dsn), "timeout": TIMEOUT_S, **options},
        )
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port} for probes" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_server_that_a_handler_misses_is_none_of_the_probes(dsn: str) -> None:
    elsewhere = "host=127.0.0.1 port=1 dbname=elsewhere"

    async def scenario() -> None:
        nobody = AsyncQueue(elsewhere, settings=ClientSettings(retry_for_s=0.1))
        async with running_worker(dsn, lambda message: None) as worker:
            while worker.status().not_ready:  # noqa: ASYNC110 - the worker starts
                await asyncio.sleep(0.01)
            with pytest.raises(ConnectionLost):
                await nobody.enqueue("acme", 1)
            assert outage.is_known(elsewhere)
            assert (worker.status().not_ready, worker.status().is_waiting) == ("", False)

    try:
        asyncio.run(scenario())
    finally:
        # Other tests of this process would take it for theirs.
        outage.Outage(elsewhere).record_success()
