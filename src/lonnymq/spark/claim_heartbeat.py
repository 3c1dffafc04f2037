"""Extends the leases of a claim while Spark processes its batch, for at most `max_claim_s` seconds."""

import threading
import time
from typing import TYPE_CHECKING

from lonnymq.calls import claim as calls
from lonnymq.errors import LonnyError

if TYPE_CHECKING:
    from lonnymq.client.sync.queue import Queue


class ClaimHeartbeat:
    """A daemon thread in the source's process on the driver; it ends with the query or with the JVM."""

    def __init__(self, queue: "Queue", lease_s: int, max_claim_s: int) -> None:
        self._queue = queue
        self._lease_s = lease_s
        self._max_s = max_claim_s
        self._claim: str | None = None
        self._until = 0.0
        self._thread: threading.Thread | None = None

    def start(self, claim: str) -> None:
        """Extend the leases of this claim from now on, and no longer those of the previous one."""
        if claim != self._claim:
            self._until = time.monotonic() + self._max_s
            self._claim = claim
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="lonnymq claim heartbeat", daemon=True)
            self._thread.start()

    def stop(self, claim: str) -> None:
        """Stop extending: the claim is complete."""
        if self._claim == claim:
            self._claim = None

    def _run(self) -> None:
        while True:
            time.sleep(self._lease_s / 3)
            claim = self._claim
            if claim is None or time.monotonic() > self._until:
                continue
            try:
                self._queue.caller.perform(calls.heartbeat(claim, 1000 * self._lease_s))
            except LonnyError:
                # The server is unreachable. Two more tries fit into the lease; if they fail as well, the
                # messages are delivered again.
                continue
