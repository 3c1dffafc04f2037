"""One run of a scenario: name, seed, duration, and what to clean up afterwards."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from tests.chaos.account import Account


class Skip(Exception):
    """The machine lacks what the scenario needs; the message says what."""


class DeadlineExceeded(BaseException):
    """A deadline has passed; derived from BaseException, so that `except Exception` does not catch it."""


@dataclass
class Run:
    """The arguments of a scenario."""

    name: str
    seconds: float
    seed: int
    directory: Path
    cleanup: ExitStack
    random: Random = field(init=False)
    began_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.random = Random(f"{self.seed} {self.name}")

    def say(self, text: str) -> None:
        """Print a line with the seconds since the start."""
        print(f"  {time.monotonic() - self.began_at:6.1f} s  {text}", flush=True)


@dataclass(frozen=True)
class Scenario:
    """`execute` injects faults for about `seconds`, and returns the account."""

    name: str
    summary: str
    seconds: float
    execute: Callable[[Run], Account]


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait for a condition without which the scenario cannot continue."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise DeadlineExceeded(f"waited {seconds:g} s for {what}")
        time.sleep(0.05)


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Raise DeadlineExceeded in the main thread after some seconds."""

    def on_alarm(number: int, frame: FrameType | None) -> None:
        raise DeadlineExceeded(f"waited {seconds:g} s for {what}")

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def ignore_signals() -> Iterator[None]:
    """Ignore SIGINT and SIGTERM during cleanup, whose steps have deadlines of their own."""
    before = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
