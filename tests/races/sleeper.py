"""A worker that sleeps as documented: it registers, dequeues until the horizon has passed, then listens."""

import time
from typing import Any

import psycopg

from tests.races.sessions import Answer, Session, ask, value


class Sleeper:
    """`fall_asleep` returns None once only a notification can wake it, or a message that arrives first."""

    def __init__(self, session: Session, name: str) -> None:
        self.session, self.name = session, name
        self.session.execute(psycopg.sql.SQL("listen {}").format(self._event()))

    def fall_asleep(self) -> Answer | None:
        self.session.execute("select sleeper_register(%s, 60000)", [self.name])
        newest = value(self.session, "select newest from queue_horizon()")
        while True:
            # The order matters: the dequeue must see all transactions that the horizon has passed.
            oldest = value(self.session, "select oldest from queue_horizon()")
            answer = ask(self.session, 10)
            if answer.leased:
                return answer
            if oldest >= newest and answer.outcome == "empty" and (answer.wait_ms or 0) > 1000:
                return None
            time.sleep(0.0005)

    def sleep(self, *, max_s: float) -> bool:
        """Return whether a notification arrived."""
        return bool(list(self.session.notifies(timeout=max_s, stop_after=1)))

    def wake_up(self) -> None:
        self.session.execute("select sleeper_clear(%s)", [self.name])
        list(self.session.notifies(timeout=0))

    def _event(self) -> psycopg.sql.Identifier:
        name: Any = value(self.session, "select queue_event()")
        return psycopg.sql.Identifier(name)
