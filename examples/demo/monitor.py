"""Monitors the run from separate sessions: a table of tenants, and samples of the capped tenant's leases."""

import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import psycopg
from rich.console import Console
from rich.live import Live
from rich.table import Table

from examples.demo import tenants
from lonnymq import Queue

SIZES = {
    "noisy": tenants.NOISY,
    "small": tenants.SMALL_TENANTS * tenants.SMALL,
    "capped": tenants.CAPPED,
    "throttled": tenants.THROTTLED,
    "failing": tenants.FAILING,
}
TITLES = {
    "noisy": "noisy",
    "small": f"{tenants.SMALL_TENANTS} small tenants",
    "capped": f"capped at {tenants.MAX_CONCURRENCY}",
    "throttled": f"one per {tenants.RELEASE_INTERVAL_MS} ms",
    "failing": "failing",
}
EVERY_S = 0.2


@dataclass
class Group:
    """The figures of one tenant, or of all small ones together."""

    waiting: int = 0
    leased: int = 0
    ended: int = 0
    reasons: set[str] = field(default_factory=set)


class Monitor:
    """Shows the progress of all tenants, and samples how many messages of the capped tenant are leased."""

    def __init__(self, queue: Queue, dsn: str) -> None:
        self._queue = queue
        self._dsn = dsn
        self.samples = 0
        self.max_leased = 0
        self.began = time.monotonic()
        self.elapsed = 0.0

    def __enter__(self) -> "Monitor":
        self._connection = psycopg.connect(self._dsn, autocommit=True)
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample_leases)
        self._thread.start()
        self._screen = Screen()
        return self

    def __exit__(self, *exception: object) -> None:
        self.elapsed = time.monotonic() - self.began
        self._is_stopped.set()
        self._thread.join()
        self._connection.close()
        self._screen.close()

    def show(self) -> dict[str, Group]:
        """Read the figures, show them, wait a moment, and return them."""
        groups = self._groups()
        self._screen.show(groups, time.monotonic() - self.began)
        time.sleep(EVERY_S)
        return groups

    def note(self, text: str) -> None:
        self._screen.note(text)

    def _groups(self) -> dict[str, Group]:
        groups = {name: Group() for name in SIZES}
        for status in self._queue.channels():
            group = groups[status.channel.partition("-")[0]]
            group.waiting += status.waiting
            group.leased += status.leased
            group.reasons.add(status.reason.value)
        ended: list[tuple[Any, ...]] = self._connection.execute(
            "select split_part(channel, '-', 1), count(*) from lonnymq.history"
            " where outcome in ('completed', 'buried') group by 1"
        ).fetchall()
        for name, count in ended:
            groups[name].ended = count
        return groups

    def _sample_leases(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._is_stopped.wait(0.005):
                leased = connection.execute(
                    "select count(*) from lonnymq.lease_status where channel = 'capped'"
                ).fetchone()
                assert leased is not None
                self.samples += 1
                self.max_leased = max(self.max_leased, leased[0])


class Screen:
    """A live table or, without a terminal, one line per second."""

    def __init__(self) -> None:
        self._console = Console()
        self._live: Live | None = None
        if sys.stdout.isatty():
            self._live = Live(console=self._console, refresh_per_second=5)
            self._live.start()
        self._next_at = 0.0

    def show(self, groups: dict[str, Group], elapsed: float) -> None:
        if self._live is not None:
            self._live.update(table(groups, elapsed))
        elif time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + 1
            ended = "  ".join(f"{name} {group.ended:,}/{SIZES[name]:,}" for name, group in groups.items())
            print(f"{elapsed:4.1f} s  {ended}", flush=True)

    def note(self, text: str) -> None:
        self._console.print(text)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()


def table(groups: dict[str, Group], elapsed: float) -> Table:
    shown = Table(title=f"after {elapsed:.1f} s", title_justify="left")
    shown.add_column("tenant")
    for title in ("waiting", "leased", "ended"):
        shown.add_column(title, justify="right")
    shown.add_column("reason")
    for name, group in groups.items():
        reasons = ", ".join(sorted(group.reasons - {"empty"})) or "-"
        shown.add_row(
            TITLES[name], f"{group.waiting:,}", str(group.leased), f"{group.ended:,}/{SIZES[name]:,}", reasons
        )
    return shown
