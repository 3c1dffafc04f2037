"""Messages that go back before they have started: later ones of their channels must not overtake them."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lonnymq.worker.attempt import Attempt

# How long fetching waits for an acknowledgement: a transaction of somebody else may have locked the lease.
MAX_WAIT_S = 1.0


class GiveBacks:
    """While `is_pending`, a call could return later messages of a channel before the earlier ones."""

    def __init__(self, changed: Callable[[], None], give_back: Callable[["Attempt", str], None]) -> None:
        self._changed = changed
        self._give_back = give_back
        # Given back, and the queue has not answered yet.
        self._pending: set[Attempt] = set()
        # Channels of messages that went back after the current call was sent.
        self._channels: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_pending(self) -> bool:
        """Whether the next call has to wait."""
        return bool(self._pending)

    def call_starts(self) -> None:
        """Forget the channels: whatever went back before this call is ahead of what it will return."""
        self._channels.clear()

    def give_back(self, attempts: Iterable["Attempt"], reason: str) -> None:
        """Give back messages that have not started."""
        for attempt in attempts:
            self._channels.add(attempt.message.channel)
            self._pending.add(attempt)
            self._give_back(attempt, reason)
        if self._pending and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MAX_WAIT_S, self._stop_waiting)

    def give_back_successors(self, attempts: "list[Attempt]") -> "list[Attempt]":
        """Of a reply, give back the messages whose predecessors went back meanwhile; return the others."""
        successors = [attempt for attempt in attempts if attempt.message.channel in self._channels]
        if not successors:
            return attempts
        others = [attempt for attempt in attempts if attempt.message.channel not in self._channels]
        self.give_back(successors, "earlier messages of the same channel were given back")
        return others

    def discard(self, attempt: "Attempt") -> None:
        """Drop a message that the queue has again, or whose lease was lost."""
        if attempt in self._pending:
            self._pending.discard(attempt)
            if not self._pending:
                self._stop_waiting()

    def _stop_waiting(self) -> None:
        self._pending.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._changed()
