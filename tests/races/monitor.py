"""A thread that checks the queue's invariants repeatedly, each time in one snapshot, while others work."""

import threading
from types import TracebackType
from typing import Self

from tests.races.sessions import Session

EXCEEDED_CAPS = """
    select c.name, c.max_concurrency, count(*) from lease l join channel c on c.id = l.channel_id
    group by c.id having count(*) > c.max_concurrency
"""


class InvariantMonitor(threading.Thread):
    """Collects exceeded caps and problems that queue_check() reports, for the duration of the block."""

    def __init__(self, session: Session, *, checks_all: bool = True) -> None:
        super().__init__()
        self.session, self.checks_all = session, checks_all
        self.problems: list[object] = []
        self.checks = 0
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        while not self._is_over.is_set() and len(self.problems) < 100:
            self.problems += self.session.execute(EXCEEDED_CAPS).fetchall()
            if self.checks_all and self.checks % 20 == 0:
                self.problems += self.session.execute("select * from queue_check()").fetchall()
            self.checks += 1
            self._is_over.wait(0.005)
