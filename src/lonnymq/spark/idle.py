"""Spark asks an idle source again at once; this spaces the questions out."""

import time

from lonnymq.connections.backoff import Backoff

FIRST_S = 0.01
MOST_S = 0.2
# Questions further apart than this are spaced by a trigger already.
APART_S = 1.0


class Idle:
    """Rests a little longer each time that nothing was found soon after nothing was found."""

    def __init__(self) -> None:
        self._asked_at = 0.0
        self._backoff = Backoff(first_s=FIRST_S, most_s=MOST_S)

    def rest(self) -> None:
        now = time.monotonic()
        if now - self._asked_at > APART_S:
            self._backoff.reset()
        else:
            time.sleep(self._backoff.next_s())
        self._asked_at = time.monotonic()
