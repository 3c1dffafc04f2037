"""What a client's log says of an outage: one line when it begins and one when it ends."""

import logging
import time

LOG = logging.getLogger("lonnymq.client")


class Outage:
    """Whether the server is away, as far as one client knows."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._began_at: float | None = None

    def goes_on(self, error: BaseException) -> None:
        """A connection could not be made, and the client tries again."""
        level = logging.WARNING if self._began_at is None else logging.DEBUG
        if self._began_at is None:
            self._began_at = time.monotonic()
        why = _first_line(error.__cause__ or error)
        LOG.log(level, "no connection to %s, trying again: %s", self._place, why)

    def ends(self) -> None:
        """A connection was made."""
        began_at, self._began_at = self._began_at, None
        if began_at is not None:
            LOG.warning("connected to %s again after %.1f s", self._place, time.monotonic() - began_at)


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:300] if lines else type(error).__name__
