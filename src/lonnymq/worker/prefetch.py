"""How many messages a worker leases ahead of its free slots."""

import time

# A message that has not started within this time goes back, so that another worker can start it.
START_WITHIN_S = 0.1
# Without a setting, a worker leases ahead what it starts in this time, about as long as a call takes.
PREFETCH_S = 0.02
MAX_PREFETCH = 400


class Prefetch:
    """Never more messages than were recently started within the time that a message may wait for a slot."""

    def __init__(self, setting: int | None) -> None:
        self._setting = setting
        self.limit = setting or 0
        # Messages started since the last measurement.
        self._started = 0
        self._measured_at = time.monotonic()

    def count_started(self, messages: int) -> None:
        self._started += messages

    def adapt(self, now: float) -> None:
        """Set the limit by how many messages were started since the last call."""
        per_s = self._started / max(now - self._measured_at, 0.0001)
        wanted = self._setting
        if wanted is None:
            wanted = min(int(per_s * PREFETCH_S), MAX_PREFETCH)
        self.limit = min(wanted, int(per_s * START_WITHIN_S))
        self._started, self._measured_at = 0, now

    def suspend(self) -> None:
        """Lease nothing ahead until the next call to `adapt()`."""
        self.limit = 0
