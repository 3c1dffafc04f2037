"""Logs an outage of the database: one line when it begins, and one when it ends."""

import logging
import time

from lonnymq.texts import one_line

LOG = logging.getLogger("lonnymq.client")

# When each server became unreachable, and when a client last tried to connect to it. Shared by all clients of
# this process, because a worker has several.
_BEGAN: dict[str, float] = {}
_TRIED: dict[str, float] = {}
# If there was no attempt for this long, no client is waiting for that server any more.
RECENT_S = 15.0


def is_known(only: str | None = None) -> bool:
    """Whether this process is waiting for a server whose outage has been logged: any, or only this one."""
    now = time.monotonic()
    return any(only in (None, target) and now - _TRIED[target] < RECENT_S for target in list(_BEGAN))


class Outage:
    """The outages of one server, as far as this process knows."""

    def __init__(self, target: str) -> None:
        self._target = target

    def record_failure(self, error: BaseException) -> None:
        """Log that a connection could not be made; the client is about to retry."""
        level = logging.DEBUG if self._target in _BEGAN else logging.WARNING
        _TRIED[self._target] = time.monotonic()
        _BEGAN.setdefault(self._target, _TRIED[self._target])
        lines = str(error.__cause__ or error).splitlines()
        reason = one_line(lines[0] if lines else type(error).__name__)
        LOG.log(level, "no connection to %s, trying again: %s", self._target, reason)

    def record_success(self) -> None:
        """Log the end of an outage, if there was one: a connection was made."""
        began_at = _BEGAN.pop(self._target, None)
        if began_at is not None:
            LOG.warning("connected to %s again after %.1f s", self._target, time.monotonic() - began_at)
