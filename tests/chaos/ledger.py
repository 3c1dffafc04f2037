"""Ledgers: append-only files in which producers and workers record what they know.

A ledger survives the death of its writer and the loss of the database, so the account can rely on it.
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
    """Events of producers (TRIED, then one of three outcomes) and of handlers (STARTED, then ENDED)."""

    TRIED = "tried"
    ACKNOWLEDGED = "acknowledged"
    # The error proves that nothing was created.
    REFUSED = "refused"
    # The connection broke before the answer came.
    UNSURE = "unsure"
    STARTED = "started"
    ENDED = "ended"


@dataclass(frozen=True)
class Entry:
    """One line; `at` is CLOCK_MONOTONIC, which all processes of a machine share and which cannot be set."""

    at: float
    event: Event
    uid: str
    channel: str = ""
    # The action that the payload asks of the handler.
    do: str = ""
    attempt: int = 0
    # The queue's own identity of the message.
    message: str = ""
    pid: int = 0
    error: str = ""


@dataclass(frozen=True)
class Ledger:
    """Writes to a ledger file; it can be pickled, so that a worker's processes share one."""

    path: str

    def write(self, event: Event, uids: Iterable[str], *, is_synced: bool = False, **facts: Any) -> None:
        """Write one line per uid in a single system call, so that a killed process writes all or none."""
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
    """Yield the entries of each ledger in the order they were written."""
    for path in paths:
        if not path.exists():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = json.loads(line)
            yield Entry(**{**fields, "event": Event(fields["event"])})
