"""Spark polls an idle streaming source without a pause; this adds one."""

import time

from lonnymq.connections.backoff import Backoff

FIRST_PAUSE_S = 0.01
MAX_PAUSE_S = 0.2
# Empty polls further apart than this are already spaced out by the query's trigger.
CONSECUTIVE_WITHIN_S = 1.0


class IdleBackoff:
    """Waits a little longer after each consecutive empty poll."""

    def __init__(self) -> None:
        self._polled_at = 0.0
        self._backoff = Backoff(first_s=FIRST_PAUSE_S, max_s=MAX_PAUSE_S)

    def wait(self) -> None:
        now = time.monotonic()
        if now - self._polled_at > CONSECUTIVE_WITHIN_S:
            self._backoff.reset()
        else:
            time.sleep(self._backoff.next_s())
        self._polled_at = time.monotonic()
