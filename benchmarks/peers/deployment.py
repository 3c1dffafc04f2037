"""One peer in a fresh place: its programs, started, told, listened to and stopped."""

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
from benchmarks.peers.programs.kit import ORDER, Order, Policy
from benchmarks.peers.progress import Meter
from benchmarks.peers.services import Place

START_S = 90.0
STOP_S = 10.0
ENQUEUE_S = 1_800.0
# Nothing for so long: it is stuck.
SILENCE_S = 20.0
LOOK_S = 0.02
EVERYBODY = "everybody"


class ProgramFailed(RuntimeError):
    """A peer's program ended, or did not start; the message has the end of its log."""


@dataclass(frozen=True)
class Sent:
    """How many a program has enqueued, how long it took, and how much of the CPU."""

    count: int
    took_s: float
    cpu_s: float

    @property
    def per_s(self) -> float:
        return self.count / self.took_s


class Crew:
    """Worker processes, and what they say."""

    def __init__(self, meter: Meter, log: Path) -> None:
        self.meter = meter
        self.log = log
        self.processes: list[subprocess.Popen[bytes]] = []

    def cpu_s(self) -> float:
        """Return the CPU seconds of all processes until now."""
        return sum(cpu.of_group(process.pid) for process in self.processes)

    def kill(self, pid: int) -> None:
        """Kill a process, as the kernel does when memory is short, with all that were started with it."""
        [process] = [one for one in self.processes if one.pid == os.getpgid(pid)]
        self.processes.remove(process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def wait(self, count: int, window_s: float = float("inf"), silence_s: float = SILENCE_S) -> bool:
        """Wait for so many messages, in all; False: time is over."""
        is_done = self.meter.wait(count, silence_s, window_s)
        self._check()
        return is_done

    def wait_until(self, is_enough: Callable[[], bool], window_s: float) -> bool:
        """Wait until that is so; False: time is over."""
        ends_at = time.monotonic() + window_s
        while not (found := is_enough()) and time.monotonic() < ends_at:
            time.sleep(LOOK_S)
        self._check()
        return found

    def _check(self) -> None:
        for process in self.processes:
            if process.poll() is not None:
                raise ProgramFailed(f"a worker ended with {process.returncode}: {tail(self.log)}")

    def stop(self) -> None:
        for process in self.processes:
            _signal(process, signal.SIGTERM)
        ends_at = time.monotonic() + STOP_S
        for process in self.processes:
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, ends_at - time.monotonic()))
            # Also what it has left behind.
            _signal(process, signal.SIGKILL)
            process.wait()


@dataclass(frozen=True)
class Stage:
    """Where a scenario plays."""

    peer: Peer
    environment: Environment
    place: Place
    folder: Path
    tenants: dict[str, Policy]
    # Unlike any before.
    name: str
    # Where a worker will be killed; some peers store it with each message.
    lease_s: int | None

    def run(self, order: Order) -> str:
        """Run the program to its end, and return what it printed last."""
        done = subprocess.run(
            self.environment.command,
            env=self._environ(order),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=ENQUEUE_S,
            check=False,
        )
        if done.returncode:
            raise ProgramFailed(f"{self.peer.name}, {order.do}: {done.stderr[-1_500:]}")
        return done.stdout.strip().rpartition("\n")[2]

    def enqueue(
        self,
        groups: Sequence[tuple[str, int]] | int,
        how: str = "bulk",
        per_s: float = 0.0,
        sleep_ms: int = 0,
        is_uneven: bool = False,
        window_s: float | None = None,
    ) -> Sent:
        """Have so many messages of each tenant enqueued, in that order; in bulk, while there is time."""
        if isinstance(groups, int):
            groups = [(EVERYBODY, groups)]
        order = self.order(
            "enqueue",
            groups=list(groups),
            how=how,
            per_s=per_s,
            sleep_ms=sleep_ms,
            is_uneven=is_uneven,
            window_s=window_s,
        )
        return Sent(**json.loads(self.run(order)))

    @contextlib.contextmanager
    def crew(
        self,
        processes: int,
        *,
        batch: int | None = None,
        is_traced: bool = False,
        is_apart: bool = False,
    ) -> Iterator[Crew]:
        """So many worker processes, which have been told to go; apart: each can be killed for itself."""
        meter = Meter(self.folder / f"meter-{uuid.uuid4().hex[:8]}")
        crew = Crew(meter, self.folder / "workers.log")
        starts = 1 if self.peer.has_pool and not is_apart else processes
        order = self.order(
            "work",
            processes=processes // starts,
            batch=batch,
            is_traced=is_traced,
            meter=str(meter.path),
        )
        try:
            with crew.log.open("ab") as log:
                crew.processes.extend(self._start(order, log.fileno()) for _ in range(starts))
            self._let_go(crew, starts)
            yield crew
        finally:
            crew.stop()
            meter.close()

    def _let_go(self, crew: Crew, starts: int) -> None:
        ends_at = time.monotonic() + START_S
        while len(crew.meter.ready) < starts:
            if any(process.poll() is not None for process in crew.processes):
                raise ProgramFailed(f"a worker of {self.peer.name} did not start: {tail(crew.log)}")
            if time.monotonic() > ends_at:
                raise ProgramFailed(f"workers of {self.peer.name} took more than {START_S:.0f} s to start")
            time.sleep(0.01)
        for process in crew.processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.close()

    def _start(self, order: Order, log: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.environment.command,
            env=self._environ(order),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def order(self, do: str, **words: object) -> Order:
        return Order(do=do, place=self.name, tenants=self.tenants, lease_s=self.lease_s, **words)  # type: ignore[arg-type]

    def _environ(self, order: Order) -> dict[str, str]:
        told = {ORDER: json.dumps(dataclasses.asdict(order))}
        return {**os.environ, **self.environment.variables, **self.place.variables, **told}


@contextlib.contextmanager
def staged(
    peer: Peer, environment: Environment, place: Place, tenants: dict[str, Policy], lease_s: int | None
) -> Iterator[Stage]:
    """A fresh place for one measurement, with the peer installed in it."""
    with tempfile.TemporaryDirectory(prefix="lonnymq-peers-") as folder:
        name = f"p{uuid.uuid4().hex[:12]}"
        stage = Stage(peer, environment, place, Path(folder), tenants or {EVERYBODY: Policy()}, name, lease_s)
        stage.run(stage.order("install"))
        yield stage


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-1_500:]


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
