"""Letting others go first: one message wakes all that sleep, and one of them is enough."""

FIRST_S = 0.0005
MOST_S = 0.003


class Courtesy:
    """Who was woken in vain lets others go first the next time, until something comes.

    Each kind of wake-up counts for itself: an idle worker looks by the clock, too, and finds nothing.
    """

    def __init__(self) -> None:
        self._pauses_s: dict[bool, float] = {}
        self._was_notified: bool | None = None

    def woken(self, was_notified: bool) -> float:
        """Note a wake-up, by a notification or by the clock, and return how long to let others go first."""
        self._was_notified = was_notified
        return self._pauses_s.get(was_notified, 0.0)

    def in_vain(self) -> None:
        """The last wake-up, if there was one, has brought nothing."""
        if self._was_notified is not None:
            pause_s = self._pauses_s.get(self._was_notified, 0.0)
            self._pauses_s[self._was_notified] = min(max(2 * pause_s, FIRST_S), MOST_S)
            self._was_notified = None

    def rewarded(self) -> None:
        """Something came: whoever gets messages goes on doing so at once."""
        self._pauses_s.clear()
        self._was_notified = None
