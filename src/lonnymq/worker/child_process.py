"""What a child process of a supervisor does: make the worker, and stop when told."""

import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from lonnymq.errors import InvalidArgument, LonnyError
from lonnymq.worker.settings import ExitCode
from lonnymq.worker.shutdown import FORCED_EXIT_S, HardDeadline, Shutdown
from lonnymq.worker.worker_log import LOGGER

if TYPE_CHECKING:
    from lonnymq.worker.worker import Worker

# What the parent says, and what the child says.
STOP, NOW = b"stop", b"now"
READY, UNUSABLE = b"ready", b"unusable"


def main(recipe: "str | Callable[[], Worker]", orders: Connection, shutdown_s: float) -> None:
    """Run a worker under the orders of the parent, and end with its exit code."""
    # A terminal sends it to the whole group; the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        worker = make_worker(recipe)
    except (LonnyError, ImportError) as error:
        LOGGER.error("the worker cannot be made: %s", error)
        send(orders, UNUSABLE)
        sys.exit(ExitCode.UNUSABLE)
    code = worker.run_under(
        partial(stop_on_order, orders=orders, shutdown_s=shutdown_s), on_ready=partial(send, orders, READY)
    )
    if code == ExitCode.UNUSABLE:
        # A handler may end the process with the same code. That means nothing.
        send(orders, UNUSABLE)
    sys.exit(code)


def send(pipe: Connection, word: bytes) -> None:
    """Say something to the parent, if it is still there."""
    with suppress(OSError):
        pipe.send_bytes(word)


def make_worker(recipe: "str | Callable[[], Worker]") -> "Worker":
    """Make the worker; a module's attribute may be one, an App, or a function that returns one."""
    from lonnymq.worker.worker import Worker

    found: Any = recipe
    if isinstance(recipe, str):
        module, _, attribute = recipe.partition(":")
        if not module or not attribute:
            raise InvalidArgument(f'recipe must be "module:attribute", got {recipe!r}')
        found = importlib.import_module(module)
        for name in attribute.split("."):
            if not hasattr(found, name):
                raise InvalidArgument(f"recipe must name what is there: {module!r} has no {attribute!r}")
            found = getattr(found, name)
    if callable(getattr(found, "worker", None)):
        found = found.worker()
    elif not isinstance(found, Worker) and callable(found):
        if isinstance(reason := getattr(found, "not_a_handler", None), str):
            raise InvalidArgument(f"recipe must lead to a Worker or an App: {reason}")
        found = found()
    if not isinstance(found, Worker):
        raise InvalidArgument(f"recipe must lead to a Worker or an App, got {type(found).__name__}")
    return found


@contextmanager
def stop_on_order(shutdown: Shutdown, orders: Connection, shutdown_s: float) -> Iterator[None]:
    """Stop when the parent says so, or is gone; in a thread, so that no handler keeps it from hearing."""
    deadline = HardDeadline()

    def stop() -> None:
        shutdown.request()
        deadline.end_process_in(shutdown_s + FORCED_EXIT_S)

    def listen() -> None:
        try:
            while orders.recv_bytes() != NOW:
                stop()
        except (EOFError, OSError):
            stop()
        else:
            shutdown.request_immediate()
            deadline.end_process_in(FORCED_EXIT_S)

    signal.signal(signal.SIGTERM, lambda number, frame: shutdown.request())
    threading.Thread(target=listen, name="lonnymq-orders", daemon=True).start()
    with deadline:
        yield
