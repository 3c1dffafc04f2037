"""Reads what worker processes report through their shared pipe: how many messages they handled, and when."""

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NANO = 1e-9
# Rates exclude the first and last tenth of the messages: processes start and end one after the other.
FROM, UNTIL = 0.1, 0.9


@dataclass(frozen=True)
class Event:
    """A handler began or ended, according to the clock that all processes share."""

    at_s: float
    tag: str
    is_end: bool
    pid: int

    @property
    def tenant(self) -> str:
        return self.tag.partition("/")[0]


@dataclass
class ProgressReader:
    """The reading end of the pipe."""

    path: Path
    ready: set[int] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    # Times, and how many messages were added at each.
    steps: list[tuple[float, int]] = field(default_factory=list)
    total: int = 0
    _counts: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        os.mkfifo(self.path)
        # Opened for writing as well, so that the pipe does not end with its first writer.
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
                    self._process(json.loads(line))

    def _process(self, report: dict[str, Any]) -> None:
        pid: int = report["pid"]
        match report:
            case {"is_ready": _}:
                self.ready.add(pid)
            case {"events": [*events]}:
                for at_ns, tag, is_end in events:
                    self.events.append(Event(at_ns * NANO, tag, bool(is_end), pid))
                    if not is_end:
                        self._add(at_ns * NANO, 1)
            case {"at": int(at_ns), "count": int(count)}:
                self._add(at_ns * NANO, count - self._counts.get(pid, 0))
                self._counts[pid] = count

    def _add(self, at_s: float, more: int) -> None:
        self.steps.append((at_s, more))
        self.total += more

    def wait(self, count: int, stuck_after_s: float, window_s: float = float("inf")) -> bool:
        """Wait until this many messages began; return False on a timeout or without progress for too long."""
        began_at = moved_at = time.monotonic()
        seen = self.total
        while self.total < count:
            time.sleep(0.005)
            now = time.monotonic()
            if self.total != seen:
                # The window starts with the first message, not while the peer is starting.
                began_at = now if seen == 0 else began_at
                seen, moved_at = self.total, now
            if now - moved_at > stuck_after_s or (seen and now - began_at > window_s):
                return False
        return True

    def rate(self) -> float:
        """Messages per second, without the first and the last tenth."""
        return rate(self.steps)

    def beginnings(self) -> list[Event]:
        """The events of beginning handlers, in order of time."""
        return sorted((event for event in self.events if not event.is_end), key=lambda event: event.at_s)


def rate(steps: list[tuple[float, int]]) -> float:
    steps = sorted(steps)
    total = sum(more for _, more in steps)
    totals = list(_cumulative(steps))
    if total < 10:
        return 0.0
    began_at, ended_at = (_time_of(totals, total * part) for part in (FROM, UNTIL))
    return total * (UNTIL - FROM) / (ended_at - began_at) if ended_at > began_at else 0.0


def _cumulative(steps: list[tuple[float, int]]) -> Iterator[tuple[float, int]]:
    done = 0
    for at_s, more in steps:
        done += more
        yield at_s, done


def _time_of(totals: list[tuple[float, int]], count: float) -> float:
    """Return when this many messages were done, interpolated between two times."""
    before_s, before = totals[0][0], 0
    for at_s, done in totals:
        if done >= count:
            return before_s + (at_s - before_s) * (count - before) / (done - before)
        before_s, before = at_s, done
    return before_s
