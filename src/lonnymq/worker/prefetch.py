"""How many messages a worker leases ahead of its free slots."""

# A message that has not started within this time goes back, so that another worker can start it.
START_WITHIN_S = 0.1
# Without a setting, a worker leases ahead what it processes during this many calls, and within these times.
PREFETCH_CALLS = 4
MIN_PREFETCH_S, MAX_PREFETCH_S = 0.02, 0.05
MAX_PREFETCH = 1_000


class Prefetch:
    """Never more messages than were recently processed within the time that a message may wait for a slot.

    Only time in which there was something to process counts. Processes that share a channel wait for each
    other: if that lowered their rates, they would lease less per call, make more calls, and wait even longer.
    """

    def __init__(self, setting: int | None, places: int, now: float) -> None:
        self._setting = setting
        # How many messages run at a time.
        self._places = places
        self.limit = setting or 0
        # Since the last measurement: messages that were processed, and the time in which there were any.
        self._processed = 0
        self._worked_s = 0.0
        # Since when there is something to process, or nothing.
        self._is_working = False
        self._changed_at = self._called_at = now

    def start_call(self, now: float) -> None:
        """Measure how long the next call takes."""
        self._called_at = now

    def add_reply(self, now: float, messages: int) -> None:
        """Set the limit by what was processed until now, and start to process the messages of a reply."""
        if self._is_working:
            self._worked_s += now - self._changed_at
            self._changed_at = now
        elif now - self._changed_at > START_WITHIN_S:
            # Measurements from before the pause say nothing about these messages.
            self.suspend()
        # Not before each place has had a message on average, or one that ends early would count too much.
        if self._processed >= self._places or self._worked_s >= START_WITHIN_S:
            self._adapt(now - self._called_at)
        if messages and not self._is_working:
            self._is_working, self._changed_at = True, now

    def count_processed(self, messages: int) -> None:
        """Count messages whose handler has returned."""
        self._processed += messages

    def end_work(self, now: float) -> None:
        """Stop counting time, because there is nothing left to process."""
        if self._is_working:
            self._worked_s += now - self._changed_at
            self._is_working, self._changed_at = False, now

    def suspend(self) -> None:
        """Lease nothing ahead until it is known again how fast messages are processed."""
        self.limit = 0
        self._processed, self._worked_s = 0, 0.0

    def _adapt(self, call_s: float) -> None:
        per_s = self._processed / max(self._worked_s, 0.0001)
        wanted = self._setting
        if wanted is None:
            ahead_s = min(max(PREFETCH_CALLS * call_s, MIN_PREFETCH_S), MAX_PREFETCH_S)
            wanted = min(int(per_s * ahead_s), MAX_PREFETCH)
        self.limit = min(wanted, int(per_s * START_WITHIN_S))
        self._processed, self._worked_s = 0, 0.0
