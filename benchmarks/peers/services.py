"""The servers that peers run on: one PostgreSQL for all peers that use it, and private brokers."""

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

START_TIMEOUT_S = 60.0
# Environment variables of libpq, asyncpg and node-postgres.
VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
}
BROKER_URL = "LONNYMQ_BENCH_BROKER"


@dataclass(frozen=True)
class Endpoint:
    """How programs reach a server, and how to read what the server has spent."""

    variables: Mapping[str, str]
    spent: Callable[[], Costs]
    # Only for PostgreSQL.
    dsn: str = ""


@dataclass
class Services:
    """Starts each server when it is first needed; brokers are suspended while others are measured."""

    server: Server
    stack: contextlib.ExitStack
    _brokers: dict[Service, tuple[str, int]] = field(default_factory=dict)

    @contextlib.contextmanager
    def endpoint(self, service: Service) -> Iterator[Endpoint]:
        if service is Service.POSTGRESQL:
            with self.server.database() as dsn:
                yield Endpoint(postgresql_variables(dsn), lambda: server_costs.read(dsn), dsn)
            return
        url, pid = self.broker(service)
        os.killpg(pid, signal.SIGCONT)
        try:
            yield Endpoint({BROKER_URL: url}, lambda: Costs(cpu.of_group(pid), 0, 0))
        finally:
            os.killpg(pid, signal.SIGSTOP)

    def broker(self, service: Service) -> tuple[str, int]:
        """Return the broker's URL and process id."""
        if service not in self._brokers:
            start = redis if service is Service.REDIS else rabbitmq
            _, pid = self._brokers[service] = self.stack.enter_context(start())
            os.killpg(pid, signal.SIGSTOP)
        return self._brokers[service]

    def versions(self) -> dict[str, str]:
        """Return the versions of the brokers; that of PostgreSQL is recorded elsewhere."""
        return {service.value: version(service) for service in self._brokers}

    def require(self, service: Service) -> None:
        """Start the broker, so that a missing one raises NotInstallable before the run."""
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
    """Start a private Redis with Debian's settings: occasional snapshots, no append-only file."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise NotInstallable("redis-server is not installed; on Debian or Ubuntu: apt install redis-server")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="lonnymq-redis-") as folder:
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
        with _run_server(command, folder, {}, port) as pid:
            yield f"redis://127.0.0.1:{port}/0", pid


@contextlib.contextmanager
def rabbitmq() -> Iterator[tuple[str, int]]:
    """Start a private RabbitMQ with default settings; another one may be running already."""
    # The program on the PATH switches to the account of the system's broker.
    binary = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    if not binary.exists():
        raise NotInstallable(
            "rabbitmq-server is not installed; on Debian or Ubuntu: apt install rabbitmq-server"
        )
    port, distribution_port = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="lonnymq-rabbitmq-") as folder:
        (Path(folder) / "rabbitmq.conf").write_text(f"listeners.tcp.default = 127.0.0.1:{port}\n")
        variables = {
            "HOME": folder,
            "RABBITMQ_NODENAME": f"lonnymq{port}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_LOG_BASE": f"{folder}/log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
        }
        with _run_server([str(binary)], folder, variables, port) as pid:
            yield f"amqp://guest:guest@127.0.0.1:{port}/%2F", pid


@contextlib.contextmanager
def _run_server(command: list[str], folder: str, variables: dict[str, str], port: int) -> Iterator[int]:
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
        ends_at = time.monotonic() + START_TIMEOUT_S
        while not _accepts_connections(port):
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


def _accepts_connections(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.settimeout(1.0)
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
