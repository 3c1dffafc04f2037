"""Whether a worker's process is alive and ready, as far as it can tell itself; any thread may ask."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lonnymq.connections import outage

if TYPE_CHECKING:
    from lonnymq.worker.inventory import Inventory
    from lonnymq.worker.metrics import WorkerFigures
    from lonnymq.worker.settings import WorkerSettings
    from lonnymq.worker.shutdown import Shutdown
    from lonnymq.worker.slot import Slot

TICK_S = 0.25
# A process hangs if its event loop has been blocked, or all its handlers have been late, for as long as a
# lease lasts, but no longer than this.
MAX_HANG_S = 30.0
# A fetch is late if the queue has not answered for two timeouts, which an idle call may take, and this.
LATE_FETCH_S = 5.0


@dataclass(frozen=True)
class HealthStatus:
    """Reasons why a process is not alive or not ready; empty if it is.

    While it waits for a server that cannot be reached, it `is_waiting`, and neither dead nor ready.
    """

    not_live: str = ""
    not_ready: str = ""
    is_waiting: bool = False
    is_stopping: bool = False

    def values(self) -> list[Any]:
        """Return the values of its fields, in their order."""
        return [self.not_live, self.not_ready, self.is_waiting, self.is_stopping]


class Probe(Protocol):
    """What can be asked about a worker with one process or several."""

    def status(self) -> HealthStatus: ...
    def figures(self) -> "WorkerFigures | None": ...


# Lets others ask while the block runs: a server for probes, or a service manager.
Watch = Callable[[Probe], AbstractContextManager[object]]


def merge(statuses: Iterable[tuple[str, HealthStatus]]) -> HealthStatus:
    """Return the status of several processes, by their names: as bad as the worst of them."""
    named = list(statuses)
    return HealthStatus(
        "; ".join(f"{name}: {one.not_live}" for name, one in named if one.not_live),
        "; ".join(f"{name}: {one.not_ready}" for name, one in named if one.not_ready),
        is_waiting=any(one.is_waiting for _, one in named),
        is_stopping=any(one.is_stopping for _, one in named),
    )


class Health:
    """Follows one worker. Its event loop leaves a mark now and then; a thread notices that there is none."""

    def __init__(self, settings: "WorkerSettings", shutdown: "Shutdown", server: str) -> None:
        self._shutdown = shutdown
        # Handlers may use other servers, whose outages are none of the worker.
        self._server = server
        self._hang_s = min(settings.lease_s, MAX_HANG_S)
        self._late_fetch_s = 2 * settings.call_timeout_s + LATE_FETCH_S
        self._ticked_at = 0.0
        self._found_at = 0.0
        self._inventory: Inventory | None = None
        self._slots: list[Slot] = []

    @contextmanager
    def follow_loop(self) -> Iterator[None]:
        """Notice if the running event loop is blocked, until the block ends."""
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def tick() -> None:
            nonlocal timer
            self._ticked_at = time.monotonic()
            timer = loop.call_later(TICK_S, tick)

        tick()
        try:
            yield
        finally:
            self._ticked_at, self._inventory, self._slots = 0.0, None, []
            if timer is not None:
                timer.cancel()

    def follow_run(self, inventory: "Inventory", slots: "list[Slot]") -> None:
        """Notice if fetches or handlers hang. The worker has found the queue, so it is ready."""
        self._inventory, self._slots, self._found_at = inventory, slots, time.monotonic()

    def status(self) -> HealthStatus:
        now = time.monotonic()
        not_live = self._not_live(now)
        is_stopping = self._shutdown.draining.is_set()
        is_waiting = not not_live and outage.is_known(self._server)
        not_ready = not_live or ("the database cannot be reached" if is_waiting else self._not_ready(now))
        return HealthStatus(not_live, "stopping" if is_stopping else not_ready, is_waiting, is_stopping)

    def _not_live(self, now: float) -> str:
        ticked_at, slots = self._ticked_at, self._slots
        if ticked_at and now - ticked_at > self._hang_s:
            return f"the event loop has been blocked for {now - ticked_at:.0f} s"
        if slots and all(now - slot.due_at > self._hang_s for slot in slots):
            return f"all {len(slots)} slots have handlers that run long after their time limit"
        return ""

    def _not_ready(self, now: float) -> str:
        inventory = self._inventory
        if inventory is None:
            return "starting"
        fetched_at = max(inventory.fetched_at, inventory.full_at, self._found_at)
        if now - fetched_at > self._late_fetch_s:
            return f"the queue has not answered a fetch for {now - fetched_at:.0f} s"
        return ""
