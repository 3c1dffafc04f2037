"""One run of a scenario: its name, seed and time, and what must be cleaned up after it."""

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
    """This machine lacks what the scenario needs; the message says what."""


class TimeIsUp(BaseException):
    """A deadline has passed; not an Exception, so that no handler of errors swallows it."""


@dataclass
class Run:
    """What a scenario is given."""

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
        """Print what happens, with the seconds since the start."""
        print(f"  {time.monotonic() - self.began_at:6.1f} s  {text}", flush=True)


@dataclass(frozen=True)
class Scenario:
    """`play` makes trouble for about `seconds`, and returns the account."""

    name: str
    summary: str
    seconds: float
    play: Callable[[Run], Account]


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait for something without which the scenario cannot go on."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeIsUp(f"waited {seconds:g} s for {what}")
        time.sleep(0.05)


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Raise in the main thread when the time is up."""

    def react(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp(f"waited {seconds:g} s for {what}")

    before = signal.signal(signal.SIGALRM, react)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def deaf_to_signals() -> Iterator[None]:
    """Clean up in peace: every step of it has a deadline of its own."""
    before = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
