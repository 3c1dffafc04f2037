"""A session of its own that looks at the whole queue in one snapshot, again and again, while others work."""

import threading
from types import TracebackType
from typing import Self

from tests.races.sessions import Session

CAPS = """
    select c.name, c.max_concurrency, count(*) from lease l join channel c on c.id = l.channel_id
    group by c.id having count(*) > c.max_concurrency
"""


class Watch(threading.Thread):
    """Collects broken caps, and what queue_check() says, for as long as the block lasts."""

    def __init__(self, session: Session, *, checks_all: bool = True) -> None:
        super().__init__()
        self.session, self.checks_all = session, checks_all
        self.problems: list[object] = []
        self.looks = 0
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
            self.problems += self.session.execute(CAPS).fetchall()
            if self.checks_all and self.looks % 20 == 0:
                self.problems += self.session.execute("select * from queue_check()").fetchall()
            self.looks += 1
            self._is_over.wait(0.005)
