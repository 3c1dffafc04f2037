"""The servers that peers live in: the same PostgreSQL for all who use one, private brokers for the others."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from benchmarks import server_costs
from benchmarks.peers import cpu
from benchmarks.peers.environment import NotInstallable
from benchmarks.peers.peer import Service
from benchmarks.server import Server
from benchmarks.server_costs import Costs

START_S = 60.0
# As libpq, asyncpg and node-postgres read them.
VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
}
BROKER_URL = "LONNYMQ_BENCH_BROKER"


@dataclass(frozen=True)
class Place:
    """Where a stage stands: how programs reach the server, and what it has spent."""

    variables: Mapping[str, str]
    spent: Callable[[], Costs]
    # Of the database, if it is one.
    dsn: str = ""


@dataclass
class Services:
    """Starts what is needed, when it is needed first; brokers stand still while others are measured."""

    server: Server
    stack: contextlib.ExitStack
    _brokers: dict[Service, tuple[str, int]] = field(default_factory=dict)

    @contextlib.contextmanager
    def place(self, service: Service) -> Iterator[Place]:
        if service is Service.POSTGRESQL:
            with self.server.database() as dsn:
                yield Place(postgresql_variables(dsn), lambda: server_costs.read(dsn), dsn)
            return
        url, pid = self.broker(service)
        os.killpg(pid, signal.SIGCONT)
        try:
            yield Place({BROKER_URL: url}, lambda: Costs(cpu.of_group(pid), 0, 0))
        finally:
            os.killpg(pid, signal.SIGSTOP)

    def broker(self, service: Service) -> tuple[str, int]:
        """Return the broker's address and process."""
        if service not in self._brokers:
            start = redis if service is Service.REDIS else rabbitmq
            _, pid = self._brokers[service] = self.stack.enter_context(start())
            os.killpg(pid, signal.SIGSTOP)
        return self._brokers[service]

    def versions(self) -> dict[str, str]:
        """Return what brokers there were; PostgreSQL speaks for itself."""
        return {service.value: version(service) for service in self._brokers}

    def need(self, service: Service) -> None:
        """Raise NotInstallable, now rather than in the middle of a run."""
        if service is not Service.POSTGRESQL:
            self.broker(service)


def version(service: Service) -> str:
    commands = {
        Service.REDIS: ["redis-server", "--version"],
        Service.RABBITMQ: ["dpkg-query", "--show", "rabbitmq-server"],
    }
    try:
        done = subprocess.run(commands[service], capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return " ".join(done.stdout.split()) or "unknown"


def postgresql_variables(dsn: str) -> dict[str, str]:
    parts = conninfo_to_dict(dsn)
    return {VARIABLES[name]: str(value) for name, value in parts.items() if name in VARIABLES and value}


@contextlib.contextmanager
def redis() -> Iterator[tuple[str, int]]:
    """A Redis of our own, as Debian sets it up: snapshots now and then, no log of changes."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise NotInstallable("redis-server is not installed; on Debian or Ubuntu: apt install redis-server")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="lonnymq-redis-") as folder:
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
        with _running(command, folder, {}, port) as pid:
            yield f"redis://127.0.0.1:{port}/0", pid


@contextlib.contextmanager
def rabbitmq() -> Iterator[tuple[str, int]]:
    """A RabbitMQ of our own, with its defaults, beside any that runs already."""
    # The one on the path changes to the account of the system's own broker.
    binary = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if not binary.exists():
        raise NotInstallable(
            "rabbitmq-server is not installed; on Debian or Ubuntu: apt install rabbitmq-server"
        )
    port, between = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="lonnymq-rabbitmq-") as folder:
        (Path(folder) / "rabbitmq.conf").write_text(f"listeners.tcp.default = 127.0.0.1:{port}\n")
        variables = {
            "HOME": folder,
            "RABBITMQ_NODENAME": f"lonnymq{port}@localhost",
            "RABBITMQ_DIST_PORT": str(between),
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_LOG_BASE": f"{folder}/log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
        }
        with _running([str(binary)], folder, variables, port) as pid:
            yield f"amqp://guest:guest@127.0.0.1:{port}/%2F", pid


@contextlib.contextmanager
def _running(command: list[str], folder: str, variables: dict[str, str], port: int) -> Iterator[int]:
    log = Path(folder) / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        ends_at = time.monotonic() + START_S
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > ends_at:
                raise NotInstallable(f"{command[0]} did not start: {log.read_text(errors='replace')[-400:]}")
            time.sleep(0.1)
        yield process.pid
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
                os.killpg(process.pid, signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30.0)


def _answers(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.settimeout(1.0)
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
