"""Several processes of the same worker: started, started again when they die, stopped together."""

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
from lonnymq.worker.settings import ExitCode
from lonnymq.worker.shutdown import FORCED_EXIT_S, SIGNALS
from lonnymq.worker.worker_log import LOGGER

if TYPE_CHECKING:
    from lonnymq.worker.worker import Worker

    Recipe = str | Callable[[], Worker]

SPAWN = multiprocessing.get_context("spawn")
# The worst comes last.
SEVERITY = [ExitCode.FINISHED, ExitCode.INTERRUPTED, ExitCode.FAILED, ExitCode.UNUSABLE]


def supervise(recipe: "Recipe", processes: int, shutdown_s: float = 20.0) -> int:
    """Run so many workers until SIGTERM or SIGINT, and return the worst of their exit codes.

    Each child makes its worker by the recipe: a function that can be pickled, or "module:attribute".
    """
    try:
        pickle.dumps(recipe)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidArgument(
            "processes must be 1 if the worker cannot be sent to another process: handler and middleware must"
            " be a module's functions, the queue made from a connection string; or name the worker, as in "
            f'supervise("module:attribute") ({error})'
        ) from error
    return Supervisor(recipe, processes, shutdown_s).run()


@dataclass(eq=False)
class Child:
    process: BaseProcess
    # Our end of a pipe. If we die it is closed, and the child stops.
    orders: Connection
    # What it has said of itself.
    is_ready: bool = False
    is_unusable: bool = False

    def listen(self) -> None:
        """Note what it has said so far."""
        with contextlib.suppress(OSError, EOFError):  # it has said all
            while self.orders.poll():
                word = self.orders.recv_bytes(100)
                self.is_ready = self.is_ready or word == child_process.READY
                self.is_unusable = self.is_unusable or word == child_process.UNUSABLE

    def order(self, word: bytes) -> None:
        with contextlib.suppress(OSError):  # it is dead already
            self.orders.send_bytes(word)


class Supervisor:
    """Children take orders from a pipe: signals reach them from terminals and from systemd as well."""

    def __init__(self, recipe: "Recipe", processes: int, shutdown_s: float) -> None:
        self._recipe = recipe
        self._processes = processes
        self._shutdown_s = shutdown_s
        self._children: list[Child] = []
        self._codes = [ExitCode.FINISHED]
        # How often we were asked to stop, and how often we have passed that on.
        self._asked = 0
        self._forwarded = 0
        # Whether any process has ever found a queue that it could use.
        self._has_worked = False
        self._kill_at = float("inf")
        self._start_at = 0.0
        self._backoff = Backoff(first_s=0.5, most_s=30.0)

    def run(self) -> int:
        """Start, watch and restart; stop when asked."""
        with self._signals() as wake_up:
            while self._children or not self._asked:
                self._start_missing()
                ready = wait(
                    [*(one.process.sentinel for one in self._children), wake_up],
                    self._seconds_to_next_event(),
                )
                if wake_up in ready:
                    os.read(wake_up, 100)
                self._reap()
                self._forward_stop()
        return max(self._codes, key=SEVERITY.index)

    def _start_missing(self) -> None:
        if self._asked or time.monotonic() < self._start_at:
            return
        # The first start would do this, and let signals through for a moment.
        resource_tracker.ensure_running()
        while len(self._children) < self._processes:
            theirs, ours = SPAWN.Pipe()
            process = SPAWN.Process(target=child_process.main, args=(self._recipe, theirs, self._shutdown_s))
            with _block_sigint():
                process.start()
            theirs.close()
            self._children.append(Child(process, ours))

    def _reap(self) -> None:
        ended = [one for one in self._children if one.process.exitcode is not None]
        for one in self._children if ended else ():
            one.listen()
            self._has_worked = self._has_worked or one.is_ready
        for dead in ended:
            self._children.remove(dead)
            dead.process.join()
            dead.orders.close()
            status = dead.process.exitcode
            code = ExitCode(status) if status in list(ExitCode) else ExitCode.FAILED
            if code is ExitCode.UNUSABLE and not dead.is_unusable:
                # A handler has ended the process so.
                code = ExitCode.FAILED
            if self._asked and status == -signal.SIGTERM:
                # As systemd sends it, to all of us: this one had not begun, or it would have listened.
                code = ExitCode.FINISHED
            # What worked once is likely to work again: a migration or a role is being changed.
            is_hopeless = dead.is_unusable and not self._has_worked
            if self._asked or is_hopeless:
                self._codes.append(code)
                self._asked = self._asked or 1
            else:
                self._plan_restart(dead, status)

    def _plan_restart(self, dead: Child, status: int | None) -> None:
        if dead.is_ready:
            # It died at work. Other tenants wait for the next one, whatever a message did to this one.
            self._backoff.reset()
        pause_s = self._backoff.next_s()
        self._start_at = time.monotonic() + pause_s
        LOGGER.error(
            "worker process %s ended with %s, starting another in %.1f s", dead.process.pid, status, pause_s
        )

    def _forward_stop(self) -> None:
        """Tell the children what we were told; those that do not listen in time are killed."""
        if self._asked > self._forwarded:
            is_first = self._forwarded == 0 and self._asked == 1
            self._forwarded = self._asked
            count = len(self._children)
            noun = "process" if count == 1 else "processes"
            LOGGER.info("stopping %s %s%s", count, noun, "" if is_first else " now")
            for one in self._children:
                one.order(child_process.STOP if is_first else child_process.NOW)
            call_timeout_s = (self._shutdown_s if is_first else 0.0) + 2 * FORCED_EXIT_S
            self._kill_at = time.monotonic() + call_timeout_s
        if time.monotonic() >= self._kill_at:
            for one in self._children:
                one.process.kill()

    def _seconds_to_next_event(self) -> float | None:
        until = [self._kill_at]
        if not self._asked and len(self._children) < self._processes:
            until.append(self._start_at)
        soonest = min(until)
        return None if soonest == float("inf") else max(0.05, soonest - time.monotonic())

    @contextmanager
    def _signals(self) -> Iterator[int]:
        """Count SIGTERM and SIGINT; yield what becomes readable when one comes."""
        readable, writable = os.pipe()
        os.set_blocking(writable, False)

        def react(number: int, frame: FrameType | None) -> None:
            self._asked += 1
            with contextlib.suppress(BlockingIOError):
                os.write(writable, b"!")

        before = {one: signal.signal(one, react) for one in SIGNALS}
        try:
            yield readable
        finally:
            for one in SIGNALS:
                signal.signal(one, before[one])
            os.close(readable)
            os.close(writable)


@contextmanager
def _block_sigint() -> Iterator[None]:
    """Start children deaf to it, until they can ignore it; for us it comes a little later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
