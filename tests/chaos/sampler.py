"""Samples how many leases each channel holds, each time in one snapshot."""

import threading
import time
from types import TracebackType
from typing import Self

import psycopg

from tests.chaos.evidence import connect

PAUSE_S = 0.05
LEASES = """
select coalesce(c.name, l.channel_id::text), count(*)
from lonnymq.lease l left join lonnymq.channel c on c.id = l.channel_id group by 1
"""


class LeaseSampler:
    """`max_leased` is the highest number of leases of each channel in any sample."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.max_leased: dict[str, int] = {}
        self.count = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                with connect(self._dsn) as connection:
                    self._sample(connection)
            except psycopg.Error:
                # Expected: the scenario has stopped the database or filled its disk.
                time.sleep(PAUSE_S)

    def _sample(self, connection: psycopg.Connection[tuple[str, int]]) -> None:
        while not self._ends.wait(PAUSE_S):
            for channel, leased in connection.execute(LEASES).fetchall():
                self.max_leased[channel] = max(leased, self.max_leased.get(channel, 0))
            self.count += 1
