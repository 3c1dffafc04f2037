"""The main function of a supervisor's child process: it creates the worker, and stops it on command."""

import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from lonnymq.errors import InvalidArgument, LonnyError
from lonnymq.worker.fleet import send_reports
from lonnymq.worker.settings import ExitCode
from lonnymq.worker.shutdown import FORCED_EXIT_S, HardDeadline, Shutdown
from lonnymq.worker.worker_log import LOGGER

if TYPE_CHECKING:
    from lonnymq.worker.worker import Worker

# From the parent to the child.
STOP, STOP_NOW = b"stop", b"now"
# From the child to the parent.
READY, UNUSABLE, DRAINING = b"ready", b"unusable", b"draining"


def main(
    worker: "str | Callable[[], Worker]",
    pipe: Connection,
    shutdown_s: float,
    report_pipe: Connection | None = None,
    has_figures: bool = False,
) -> None:
    """Run a worker until the parent stops it, and exit with its exit code."""
    # Ctrl-C in a terminal sends SIGINT to the whole process group; the parent decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        created = create_worker(worker)
    except (LonnyError, ImportError) as error:
        LOGGER.error("the worker cannot be created: %s", error)
        send(pipe, UNUSABLE)
        sys.exit(ExitCode.UNUSABLE)
    if has_figures:
        created.measure()
    with nullcontext() if report_pipe is None else send_reports(created, report_pipe):
        code = created.run_under(
            partial(stop_on_command, pipe=pipe, shutdown_s=shutdown_s),
            on_ready=partial(send, pipe, READY),
            on_drain=partial(send, pipe, DRAINING),
        )
    if code == ExitCode.UNUSABLE:
        # The exit code alone proves nothing, because a handler may end the process with the same one.
        send(pipe, UNUSABLE)
    sys.exit(code)


def send(pipe: Connection, message: bytes) -> None:
    """Send a message to the other process, unless it has ended."""
    with suppress(OSError):
        pipe.send_bytes(message)


def create_worker(worker: "str | Callable[[], Worker]") -> "Worker":
    """Return the worker that a function returns, or that "module:attribute" names.

    The attribute may be a Worker, an App, or a function that returns one.
    """
    from lonnymq.worker.worker import Worker

    found: Any = worker
    if isinstance(worker, str):
        module, _, attribute = worker.partition(":")
        if not module or not attribute:
            raise InvalidArgument(
                f'worker must be "module:attribute", or a function that returns a Worker, got {worker!r}'
            )
        found = importlib.import_module(module)
        for name in attribute.split("."):
            if not hasattr(found, name):
                raise InvalidArgument(
                    f'worker must be "module:attribute", got {worker!r}: module {module!r} has no attribute'
                    f" {attribute!r}"
                )
            found = getattr(found, name)
    if callable(getattr(found, "worker", None)):
        found = found.worker()
    elif not isinstance(found, Worker) and callable(found):
        if isinstance(reason := getattr(found, "not_a_handler", None), str):
            raise InvalidArgument(
                f"worker must be a Worker, an App, or a function that returns one: {reason}"
            )
        found = found()
    if not isinstance(found, Worker):
        raise InvalidArgument(
            "worker must be a Worker, an App, or a function that returns one, got an object of type"
            f" {type(found).__name__}"
        )
    return found


@contextmanager
def stop_on_command(shutdown: Shutdown, pipe: Connection, shutdown_s: float) -> Iterator[None]:
    """Stop when the parent says so or has ended. Listens in a thread, which no handler can block."""
    deadline = HardDeadline()

    def stop() -> None:
        shutdown.request()
        deadline.set(shutdown_s + FORCED_EXIT_S)

    def listen() -> None:
        try:
            while pipe.recv_bytes() != STOP_NOW:
                stop()
        except (EOFError, OSError):
            stop()
        else:
            shutdown.request_immediate()
            deadline.set(FORCED_EXIT_S)

    signal.signal(signal.SIGTERM, lambda number, frame: shutdown.request())
    threading.Thread(target=listen, name="lonnymq-supervisor", daemon=True).start()
    with deadline:
        yield
