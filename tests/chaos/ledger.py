"""Ledgers: append-only files in which producers and workers write down what they know.

A ledger survives whatever happens to its writer or to the database, so the account can rely on it.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class Event(StrEnum):
    """A producer tries, then knows the outcome or not; a worker's handler starts, then ends."""

    TRIED = "tried"
    ACKNOWLEDGED = "acknowledged"
    # The call failed in a way that says that nothing was changed.
    REFUSED = "refused"
    UNSURE = "unsure"
    STARTED = "started"
    ENDED = "ended"


@dataclass(frozen=True)
class Entry:
    """One line; `at` is CLOCK_MONOTONIC, which all processes of a machine share and nobody can step."""

    at: float
    event: Event
    uid: str
    channel: str = ""
    # What the payload asks its handler to do.
    do: str = ""
    attempt: int = 0
    pid: int = 0
    error: str = ""


@dataclass(frozen=True)
class Ledger:
    """The writing end; it can be pickled, so that a worker's processes share one."""

    path: str

    def write(self, event: Event, uids: Iterable[str], *, is_synced: bool = False, **facts: Any) -> None:
        """Write one line per uid in one system call: a killed process has written all of them or none."""
        at, pid = time.monotonic(), os.getpid()
        lines = [
            json.dumps({"at": at, "event": event, "uid": uid, "pid": pid, **facts}) + "\n" for uid in uids
        ]
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, "".join(lines).encode())
            if is_synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read(*paths: Path) -> Iterator[Entry]:
    """Yield the entries of ledgers, each in the order it was written."""
    for path in paths:
        if not path.exists():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = json.loads(line)
            yield Entry(**{**fields, "event": Event(fields["event"])})
