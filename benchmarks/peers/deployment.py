"""Deploys a peer for one measurement, and runs its programs: installation, producers and workers."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import cpu
from benchmarks.peers.environment import Environment
from benchmarks.peers.peer import Peer
from benchmarks.peers.programs.kit import COMMAND_VARIABLE, Command, TenantLimits
from benchmarks.peers.progress import ProgressReader
from benchmarks.peers.services import Endpoint

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 10.0
ENQUEUE_TIMEOUT_S = 1_800.0
# Without progress for this long, a peer is considered stuck.
STUCK_AFTER_S = 20.0
POLL_S = 0.02
SINGLE_TENANT = "single"


class ProgramFailed(RuntimeError):
    """A peer's program failed or did not start; the message contains the end of its log."""


@dataclass(frozen=True)
class EnqueueResult:
    """How many messages a program has enqueued, in what time, and with how much CPU time."""

    count: int
    took_s: float
    cpu_s: float

    @property
    def per_s(self) -> float:
        return self.count / self.took_s


class WorkerProcesses:
    """Worker processes, and the progress that they report."""

    def __init__(self, progress: ProgressReader, log: Path) -> None:
        self.progress = progress
        self.log = log
        self.processes: list[subprocess.Popen[bytes]] = []

    def cpu_s(self) -> float:
        """Return the CPU seconds that all processes have used so far."""
        return sum(cpu.of_group(process.pid) for process in self.processes)

    def kill(self, pid: int) -> None:
        """Kill a process with its process group, with SIGKILL like the kernel's out-of-memory killer."""
        [process] = [one for one in self.processes if one.pid == os.getpgid(pid)]
        self.processes.remove(process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def wait(self, count: int, window_s: float = float("inf"), stuck_after_s: float = STUCK_AFTER_S) -> bool:
        """Wait until this many messages in total were handled; return False on a timeout."""
        is_done = self.progress.wait(count, stuck_after_s, window_s)
        self._check()
        return is_done

    def wait_until(self, is_enough: Callable[[], bool], window_s: float) -> bool:
        """Wait until `is_enough()`; return False on a timeout."""
        ends_at = time.monotonic() + window_s
        while not (found := is_enough()) and time.monotonic() < ends_at:
            time.sleep(POLL_S)
        self._check()
        return found

    def _check(self) -> None:
        for process in self.processes:
            if process.poll() is not None:
                raise ProgramFailed(f"a worker ended with {process.returncode}: {tail(self.log)}")

    def stop(self) -> None:
        for process in self.processes:
            _signal(process, signal.SIGTERM)
        ends_at = time.monotonic() + STOP_TIMEOUT_S
        for process in self.processes:
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, ends_at - time.monotonic()))
            # Also kill the processes that it left behind.
            _signal(process, signal.SIGKILL)
            process.wait()


@dataclass(frozen=True)
class Deployment:
    """A peer installed at an endpoint, for one measurement."""

    peer: Peer
    environment: Environment
    endpoint: Endpoint
    folder: Path
    tenants: dict[str, TenantLimits]
    # A unique name, for servers that several deployments share.
    namespace: str
    # Given if a worker will be killed; some peers store it with each message.
    lease_s: int | None

    def run(self, command: Command) -> str:
        """Run the peer's program to its end, and return its last line of output."""
        done = subprocess.run(
            self.environment.argv,
            env=self._environ(command),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=ENQUEUE_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise ProgramFailed(f"{self.peer.name}, {command.action}: {done.stderr[-1_500:]}")
        return done.stdout.strip().rpartition("\n")[2]

    def enqueue(
        self,
        groups: Sequence[tuple[str, int]] | int,
        mode: str = "bulk",
        per_s: float = 0.0,
        sleep_ms: int = 0,
        is_uneven: bool = False,
        window_s: float | None = None,
    ) -> EnqueueResult:
        """Enqueue a number of messages per tenant, in order; in bulk mode for at most `window_s` seconds."""
        if isinstance(groups, int):
            groups = [(SINGLE_TENANT, groups)]
        command = self.command(
            "enqueue",
            groups=list(groups),
            mode=mode,
            per_s=per_s,
            sleep_ms=sleep_ms,
            is_uneven=is_uneven,
            window_s=window_s,
        )
        return EnqueueResult(**json.loads(self.run(command)))

    @contextlib.contextmanager
    def workers(
        self,
        processes: int,
        *,
        batch: int | None = None,
        is_traced: bool = False,
        can_be_killed: bool = False,
    ) -> Iterator[WorkerProcesses]:
        """Start worker processes; with `can_be_killed`, each can be killed without the others."""
        progress = ProgressReader(self.folder / f"progress-{uuid.uuid4().hex[:8]}")
        workers = WorkerProcesses(progress, self.folder / "workers.log")
        starts = 1 if self.peer.has_pool and not can_be_killed else processes
        command = self.command(
            "work",
            processes=processes // starts,
            batch=batch,
            is_traced=is_traced,
            progress_pipe=str(progress.path),
        )
        try:
            with workers.log.open("ab") as log:
                workers.processes.extend(self._start(command, log.fileno()) for _ in range(starts))
            self._let_go(workers, starts)
            yield workers
        finally:
            workers.stop()
            progress.close()

    def _let_go(self, workers: WorkerProcesses, starts: int) -> None:
        """Wait until all workers are ready, then let them start working."""
        ends_at = time.monotonic() + START_TIMEOUT_S
        while len(workers.progress.ready) < starts:
            if any(process.poll() is not None for process in workers.processes):
                raise ProgramFailed(f"a worker of {self.peer.name} did not start: {tail(workers.log)}")
            if time.monotonic() > ends_at:
                raise ProgramFailed(
                    f"workers of {self.peer.name} took more than {START_TIMEOUT_S:.0f} s to start"
                )
            time.sleep(0.01)
        for process in workers.processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.close()

    def _start(self, command: Command, log: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.environment.argv,
            env=self._environ(command),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def command(self, action: str, **fields: object) -> Command:
        return Command(
            action=action,
            namespace=self.namespace,
            tenants=self.tenants,
            lease_s=self.lease_s,
            **fields,  # type: ignore[arg-type]
        )

    def _environ(self, command: Command) -> dict[str, str]:
        encoded = {COMMAND_VARIABLE: json.dumps(dataclasses.asdict(command))}
        return {**os.environ, **self.environment.variables, **self.endpoint.variables, **encoded}


@contextlib.contextmanager
def deploy(
    peer: Peer,
    environment: Environment,
    endpoint: Endpoint,
    tenants: dict[str, TenantLimits],
    lease_s: int | None,
) -> Iterator[Deployment]:
    """Install a peer at an endpoint, for one measurement."""
    with tempfile.TemporaryDirectory(prefix="lonnymq-peers-") as folder:
        namespace = f"p{uuid.uuid4().hex[:12]}"
        deployment = Deployment(
            peer,
            environment,
            endpoint,
            Path(folder),
            tenants or {SINGLE_TENANT: TenantLimits()},
            namespace,
            lease_s,
        )
        deployment.run(deployment.command("install"))
        yield deployment


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-1_500:]


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
