"""Spark asks an idle source again at once; this spaces the questions out."""

import time

FIRST_S = 0.01
MOST_S = 0.2
# Questions further apart than this are spaced by a trigger already.
APART_S = 1.0


class Idle:
    """Rests a little longer each time that nothing was found soon after nothing was found."""

    def __init__(self) -> None:
        self._asked_at = 0.0
        self._pause_s = FIRST_S

    def rest(self) -> None:
        now = time.monotonic()
        if now - self._asked_at > APART_S:
            self._pause_s = FIRST_S
        else:
            time.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, MOST_S)
        self._asked_at = time.monotonic()
