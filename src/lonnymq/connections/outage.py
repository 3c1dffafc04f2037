"""Logs an outage of the database: one line when it begins and one when it ends."""

import logging
import time

from lonnymq.texts import line

LOG = logging.getLogger("lonnymq.client")

# When each server went away, and when a client last tried to reach it; for all clients of this process,
# because a worker has several.
_BEGAN: dict[str, float] = {}
_TRIED: dict[str, float] = {}
# If there was no attempt for this long, no client waits for that server any more.
RECENT_S = 15.0


def is_known() -> bool:
    """Whether the log already says that a server is away which this process waits for."""
    now = time.monotonic()
    return any(now - _TRIED[place] < RECENT_S for place in list(_BEGAN))


class Outage:
    """Whether the server at a place is away, as far as this process knows."""

    def __init__(self, place: str) -> None:
        self._place = place

    def goes_on(self, error: BaseException) -> None:
        """A connection could not be made, and the client tries again."""
        level = logging.DEBUG if self._place in _BEGAN else logging.WARNING
        _TRIED[self._place] = time.monotonic()
        _BEGAN.setdefault(self._place, _TRIED[self._place])
        said = str(error.__cause__ or error).splitlines()
        why = line(said[0] if said else type(error).__name__)
        LOG.log(level, "no connection to %s, trying again: %s", self._place, why)

    def ends(self) -> None:
        """A connection was made."""
        began_at = _BEGAN.pop(self._place, None)
        if began_at is not None:
            LOG.warning("connected to %s again after %.1f s", self._place, time.monotonic() - began_at)
