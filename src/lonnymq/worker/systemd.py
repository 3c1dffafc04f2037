"""Tells systemd that a worker is ready, alive and stopping: the protocol of sd_notify."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from lonnymq.worker.health import Probe, Watch

# How often to look, at least: systemd learns of a start or a stop within this time.
LOOK_S = 0.5


@contextmanager
def watched(probe: Probe, watch: Watch | None) -> Iterator[None]:
    """While the block runs, notify systemd, if it started this process, and run `watch`."""
    with ExitStack() as stack:
        if is_started_by_systemd():
            stack.enter_context(_notified(probe))
        if watch is not None:
            stack.enter_context(watch(probe))
        yield


def is_started_by_systemd() -> bool:
    """Whether systemd wants to know how this process is."""
    return bool(os.environ.get("NOTIFY_SOCKET"))


def notify(state: str) -> None:
    """Send a state to systemd; ignore failures, as its own library does."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith("@"):
        # An abstract socket.
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(state.encode(), address)


@contextmanager
def _notified(probe: Probe) -> Iterator[None]:
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(probe, ended), name="lonnymq-systemd", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        notify("STOPPING=1")


def _follow(probe: Probe, ended: threading.Event) -> None:
    """Report changes, and as long as the worker is alive that it is, if systemd wants to know."""
    watchdog_s = _watchdog_s()
    pause_s = min(LOOK_S, watchdog_s / 3) if watchdog_s else LOOK_S
    is_ready = is_stopping = False
    shown = ""
    while not ended.wait(pause_s):
        status = probe.status()
        # A worker that waits for its database has started: what follows it must not wait as well.
        if not is_ready and (status.is_waiting or not status.not_ready):
            is_ready = True
            notify("READY=1")
        if status.is_stopping and not is_stopping:
            is_stopping = True
            notify("STOPPING=1")
        if watchdog_s and not status.not_live:
            notify("WATCHDOG=1")
        reason = status.not_live or status.not_ready or "working"
        if reason != shown:
            shown = reason
            notify(f"STATUS={reason}")


def _watchdog_s() -> float:
    """Return how long systemd waits for a sign of life; 0.0 if it does not, or not for this process."""
    microseconds, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not microseconds.isdecimal() or pid not in ("", str(os.getpid())):
        return 0.0
    return int(microseconds) / 1_000_000
