"""What worker processes say through the pipe that they share: how much they handled, and when."""

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NANO = 1e-9
# The first and last tenth are not counted: processes start one by one, and the last messages come one by one.
FROM, UNTIL = 0.1, 0.9


@dataclass(frozen=True)
class Event:
    """A handler began, or ended; on the clock that all processes share."""

    at_s: float
    tag: str
    is_end: bool
    pid: int

    @property
    def tenant(self) -> str:
        return self.tag.partition("/")[0]


@dataclass
class Meter:
    """The reading end."""

    path: Path
    ready: set[int] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    # At which moment how many more.
    steps: list[tuple[float, int]] = field(default_factory=list)
    total: int = 0
    _counts: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        os.mkfifo(self.path)
        # For writing too: otherwise the pipe would end with its first writer.
        self._pipe = os.open(self.path, os.O_RDWR)
        threading.Thread(target=self._read, daemon=True).start()

    def close(self) -> None:
        os.write(self._pipe, b"\n")

    def _read(self) -> None:
        with os.fdopen(self._pipe, "rb", buffering=0) as pipe:
            rest = b""
            while True:
                *lines, rest = (rest + pipe.read(65_536)).split(b"\n")
                for line in lines:
                    if not line:
                        return
                    self._take(json.loads(line))

    def _take(self, said: dict[str, Any]) -> None:
        pid: int = said["pid"]
        match said:
            case {"is_ready": _}:
                self.ready.add(pid)
            case {"events": [*events]}:
                for at_ns, tag, is_end in events:
                    self.events.append(Event(at_ns * NANO, tag, bool(is_end), pid))
                    if not is_end:
                        self._step(at_ns * NANO, 1)
            case {"at": int(at_ns), "count": int(count)}:
                self._step(at_ns * NANO, count - self._counts.get(pid, 0))
                self._counts[pid] = count

    def _step(self, at_s: float, more: int) -> None:
        self.steps.append((at_s, more))
        self.total += more

    def wait(self, count: int, silence_s: float, window_s: float = float("inf")) -> bool:
        """Wait until so many began; False if the time is over, or nothing happened for too long."""
        began_at = moved_at = time.monotonic()
        seen = self.total
        while self.total < count:
            time.sleep(0.005)
            now = time.monotonic()
            if self.total != seen:
                # The time that a peer needs to start is its own, not the window's.
                began_at = now if seen == 0 else began_at
                seen, moved_at = self.total, now
            if now - moved_at > silence_s or (seen and now - began_at > window_s):
                return False
        return True

    def rate(self) -> float:
        """Messages per second, without the first tenth and the last."""
        return rate(self.steps)

    def begun(self) -> list[Event]:
        """In the order of time."""
        return sorted((event for event in self.events if not event.is_end), key=lambda event: event.at_s)


def rate(steps: list[tuple[float, int]]) -> float:
    steps = sorted(steps)
    total = sum(more for _, more in steps)
    places = list(_places(steps))
    if total < 10:
        return 0.0
    began_at, ended_at = (_reached(places, total * part) for part in (FROM, UNTIL))
    return total * (UNTIL - FROM) / (ended_at - began_at) if ended_at > began_at else 0.0


def _places(steps: list[tuple[float, int]]) -> Iterator[tuple[float, int]]:
    done = 0
    for at_s, more in steps:
        done += more
        yield at_s, done


def _reached(places: list[tuple[float, int]], count: float) -> float:
    """Return when so many were done; between two moments, as if at a steady pace."""
    before_s, before = places[0][0], 0
    for at_s, done in places:
        if done >= count:
            return before_s + (at_s - before_s) * (count - before) / (done - before)
        before_s, before = at_s, done
    return before_s
