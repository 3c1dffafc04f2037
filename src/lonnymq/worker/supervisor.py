"""Runs several processes of the same worker: starts, restarts and stops them."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import TYPE_CHECKING

from lonnymq.connections.backoff import Backoff
from lonnymq.errors import InvalidArgument
from lonnymq.worker import child_process
from lonnymq.worker.fleet import Fleet
from lonnymq.worker.health import Watch
from lonnymq.worker.settings import ExitCode
from lonnymq.worker.shutdown import FORCED_EXIT_S, SIGNALS
from lonnymq.worker.systemd import is_started_by_systemd, watched
from lonnymq.worker.worker_log import LOGGER

if TYPE_CHECKING:
    from lonnymq.worker.worker import Worker

    WorkerSource = str | Callable[[], Worker]

SPAWN = multiprocessing.get_context("spawn")
# From best to worst.
SEVERITY = [ExitCode.FINISHED, ExitCode.INTERRUPTED, ExitCode.FAILED, ExitCode.UNUSABLE]


def supervise(
    worker: "WorkerSource", processes: int, shutdown_s: float = 20.0, watch: Watch | None = None
) -> int:
    """Run this many workers until SIGTERM or SIGINT, and return the worst of their exit codes.

    Each process creates its worker from a function that can be pickled, or from "module:attribute". `watch`
    is a context manager that is given an object with `status()` and `figures()` of all processes together.
    """
    try:
        pickle.dumps(worker)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidArgument(
            "processes must be 1 if the worker cannot be sent to another process. For more, handler and"
            " middleware must be functions of a module, and the queue must be created from a connection"
            f' string; or name the worker, as in supervise("module:attribute", processes=2) ({error})'
        ) from error
    supervisor = Supervisor(worker, processes, shutdown_s)
    if watch is None and not is_started_by_systemd():
        return supervisor.run()
    supervisor.fleet = Fleet(processes, has_figures=watch is not None)
    with watched(supervisor.fleet, watch):
        return supervisor.run()


@dataclass(eq=False)
class Child:
    process: BaseProcess
    # Our end of a pipe. If this process dies it is closed, and the child stops.
    pipe: Connection
    # Whether the child has sent READY, UNUSABLE, and DRAINING.
    is_ready: bool = False
    is_unusable: bool = False
    is_draining: bool = False

    def receive(self) -> None:
        """Read the messages that the child has sent so far."""
        with contextlib.suppress(OSError, EOFError):  # The child has ended; there is nothing more to read.
            while self.pipe.poll():
                message = self.pipe.recv_bytes(100)
                self.is_ready = self.is_ready or message == child_process.READY
                self.is_unusable = self.is_unusable or message == child_process.UNUSABLE
                self.is_draining = self.is_draining or message == child_process.DRAINING


class Supervisor:
    """Commands children through pipes, because terminals and systemd send signals to children as well."""

    def __init__(self, worker: "WorkerSource", processes: int, shutdown_s: float) -> None:
        self._worker = worker
        self._processes = processes
        self._shutdown_s = shutdown_s
        self._children: list[Child] = []
        # What others may ask, if somebody does.
        self.fleet: Fleet | None = None
        self._exit_codes = [ExitCode.FINISHED]
        # How many stop requests this process has received, and how many it has passed on to its children.
        self._stop_requests = 0
        self._forwarded = 0
        # Whether any child has ever found a queue that it could use.
        self._has_been_ready = False
        self._kill_at = float("inf")
        self._restart_at = 0.0
        self._backoff = Backoff(first_s=0.5, max_s=30.0)

    def run(self) -> int:
        """Run until all children have ended after a stop request; return the worst exit code."""
        with self._catch_signals() as signal_pipe:
            while self._children or not self._stop_requests:
                self._start_missing()
                sentinels = [child.process.sentinel for child in self._children]
                ready = wait([*sentinels, signal_pipe], self._wait_s())
                if signal_pipe in ready:
                    os.read(signal_pipe, 100)
                self._reap()
                self._forward_stop()
        return max(self._exit_codes, key=SEVERITY.index)

    def _start_missing(self) -> None:
        if self._stop_requests or time.monotonic() < self._restart_at:
            return
        # The first start would do this, and unblock signals for a moment.
        resource_tracker.ensure_running()
        while len(self._children) < self._processes:
            theirs, ours = SPAWN.Pipe()
            fleet = self.fleet
            report_pipe = None if fleet is None else fleet.connect()
            has_figures = fleet is not None and fleet.has_figures
            arguments = (self._worker, theirs, self._shutdown_s, report_pipe, has_figures)
            process = SPAWN.Process(target=child_process.main, args=arguments)
            with _block_sigint():
                process.start()
            theirs.close()
            if report_pipe is not None:
                report_pipe.close()
            self._children.append(Child(process, ours))

    def _reap(self) -> None:
        """Remove children that have ended; plan a restart, or stop all if no child can use the queue."""
        ended = [child for child in self._children if child.process.exitcode is not None]
        for child in self._children if ended else ():
            child.receive()
            self._has_been_ready = self._has_been_ready or child.is_ready
        for child in ended:
            self._children.remove(child)
            child.process.join()
            child.pipe.close()
            status = child.process.exitcode
            code = ExitCode(status) if status in list(ExitCode) else ExitCode.FAILED
            if code is ExitCode.UNUSABLE and not child.is_unusable:
                # A handler has ended the process with this code.
                code = ExitCode.FAILED
            if self._stop_requests and status == -signal.SIGTERM:
                # systemd sends SIGTERM to children too. This one had not installed its signal handler yet.
                code = ExitCode.FINISHED
            # A queue that could be used before is likely to be usable again, for example after a migration.
            is_permanent = child.is_unusable and not self._has_been_ready
            if child.is_draining and not self._stop_requests:
                # Somebody asked it to drain, so no other process takes its place.
                self._exit_codes.append(code)
                self._processes -= 1
                if self.fleet is not None:
                    self.fleet.expected = self._processes
                LOGGER.info("worker process %s has drained, %s remain", child.process.pid, self._processes)
                self._stop_requests = int(not self._processes)
            elif self._stop_requests or is_permanent:
                self._exit_codes.append(code)
                self._stop_requests = self._stop_requests or 1
            else:
                self._plan_restart(child, status)

    def _plan_restart(self, child: Child, status: int | None) -> None:
        if child.is_ready:
            # It died at work, perhaps because of one message. Other tenants wait for its successor.
            self._backoff.reset()
        pause_s = self._backoff.next_s()
        self._restart_at = time.monotonic() + pause_s
        LOGGER.error(
            "worker process %s ended with %s, starting another in %.1f s", child.process.pid, status, pause_s
        )

    def _forward_stop(self) -> None:
        """Pass stop requests on to the children, and kill those that do not end in time."""
        if self._stop_requests > self._forwarded:
            if self.fleet is not None:
                self.fleet.is_stopping = True
            is_first = self._forwarded == 0 and self._stop_requests == 1
            self._forwarded = self._stop_requests
            count = len(self._children)
            noun = "process" if count == 1 else "processes"
            LOGGER.info("stopping %s %s%s", count, noun, "" if is_first else " now")
            for child in self._children:
                child_process.send(child.pipe, child_process.STOP if is_first else child_process.STOP_NOW)
            timeout_s = (self._shutdown_s if is_first else 0.0) + 2 * FORCED_EXIT_S
            self._kill_at = time.monotonic() + timeout_s
        if time.monotonic() >= self._kill_at:
            for child in self._children:
                child.process.kill()

    def _wait_s(self) -> float | None:
        """Return the seconds until the next restart or kill, or None if neither is planned."""
        planned = [self._kill_at]
        if not self._stop_requests and len(self._children) < self._processes:
            planned.append(self._restart_at)
        soonest = min(planned)
        return None if soonest == float("inf") else max(0.05, soonest - time.monotonic())

    @contextmanager
    def _catch_signals(self) -> Iterator[int]:
        """Count SIGTERM and SIGINT; yield a file descriptor that becomes readable when one arrives."""
        readable, writable = os.pipe()
        os.set_blocking(writable, False)

        def handle_signal(number: int, frame: FrameType | None) -> None:
            self._stop_requests += 1
            with contextlib.suppress(BlockingIOError):
                os.write(writable, b"!")

        before = {number: signal.signal(number, handle_signal) for number in SIGNALS}
        try:
            yield readable
        finally:
            for number in SIGNALS:
                signal.signal(number, before[number])
            os.close(readable)
            os.close(writable)


@contextmanager
def _block_sigint() -> Iterator[None]:
    """Let children start with SIGINT blocked, until they ignore it; this process gets it a little later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
