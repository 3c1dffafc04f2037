"""Decides which sleeper asks first: one message wakes all sleepers, but only one of them can get it."""

from lonnymq.connections.backoff import Backoff

FIRST_S = 0.0005
MAX_S = 0.003


class WakeupBackoff:
    """A sleeper that was woken for nothing lets the others ask first until it gets a message.

    Notifications and timers count separately, because an idle worker also wakes by timer and finds nothing.
    """

    def __init__(self) -> None:
        self._backoffs: dict[bool, Backoff] = {}
        self._pauses_s: dict[bool, float] = {}
        self._was_notified: bool | None = None

    def wake(self, was_notified: bool) -> float:
        """Record a wake-up by notification or timer; return for how many seconds to let others ask first."""
        self._was_notified = was_notified
        return self._pauses_s.get(was_notified, 0.0)

    def fail(self) -> None:
        """Record that the last wake-up, if there was one, brought no message."""
        if self._was_notified is not None:
            backoff = self._backoffs.setdefault(self._was_notified, Backoff(first_s=FIRST_S, max_s=MAX_S))
            self._pauses_s[self._was_notified] = backoff.next_s()
            self._was_notified = None

    def succeed(self) -> None:
        """Record that a message came: a sleeper that gets messages asks at once."""
        self._backoffs.clear()
        self._pauses_s.clear()
        self._was_notified = None
