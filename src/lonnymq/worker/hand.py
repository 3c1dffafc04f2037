"""What one process has in hand: every lease it holds, from the dequeue to the queue's last answer."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lonnymq.client.watch import Watch
from lonnymq.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.worker.handler import Handler
    from lonnymq.worker.slot import Slot
    from lonnymq.worker.verdict import Interruption

# Without a figure of its own, a worker leases ahead as much as it works in this time: a call's, generously.
PREFETCH_S = 0.02
MAX_PREFETCH = 400
# The most that one call returns.
MAX_FETCH = 500
# Turns of the loop, from the decision to fetch until the call is on its way.
TURNS_TO_SEND = 2
# So many are ended and the queue has not answered: fetch no more.
MAX_UNACKNOWLEDGED = 2_000


class Attempt(Watch):
    """One message in hand, and what the worker knows of it."""

    __slots__ = (
        "began_at",
        "ended_at",
        "handler",
        "interruption",
        "is_doubtful",
        "kept_until",
        "message",
        "slot",
    )

    def __init__(self, message: "AsyncMessage", kept_until: float) -> None:
        super().__init__()
        self.message = message
        # By the monotonic clock: until then the lease is ours, whatever becomes of the connection.
        self.kept_until = kept_until
        # Where it is worked; before and after that, nowhere.
        self.slot: Slot | None = None
        self.handler: Handler | None = None
        self.interruption: Interruption | None = None
        self.began_at = 0.0
        self.ended_at = 0.0
        # An acknowledgement was sent and its answer was lost: it may have taken effect.
        self.is_doubtful = False
        object.__setattr__(message, "watch", self)


class Hand:
    """Leases on their way through the process: waiting for a slot, in one, or ended and not yet told."""

    def __init__(self, settings: WorkerSettings, is_batch: bool) -> None:
        self.held: set[Attempt] = set()
        self.waiting: deque[Attempt] = deque()
        # Slots with a handler in them.
        self.running = 0
        # No slot begins anything more.
        self.is_closed = False
        self.batch_size = settings.batch_size
        self._settings = settings
        self._unit = settings.batch_size if is_batch else 1
        self._prefetch = settings.prefetch or 0
        # Since the last messages came.
        self._started = 0
        self._taken_at = time.monotonic()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._room: asyncio.Future[None] | None = None

    # The fetcher's side.

    async def room(self) -> int:
        """Wait until there is room for more, and return for how many."""
        while (limit := self._limit()) < 1:
            await self._change()
        return limit

    def take(self, messages: Iterable["AsyncMessage"]) -> None:
        """Take what was leased, and wake the slots that have nothing to do."""
        now = time.monotonic()
        if self._settings.prefetch is None:
            per_s = self._started / max(now - self._taken_at, 0.0001)
            self._prefetch = min(int(per_s * PREFETCH_S), MAX_PREFETCH)
        self._started, self._taken_at = 0, now
        # The reply may have been on its way for a while; the first heartbeat knows better.
        kept_until = now + self._settings.lease_ms / 1000
        attempts = [Attempt(message, kept_until) for message in messages]
        self.held.update(attempts)
        self.waiting.extend(attempts)
        # If they are more than can begin at once, the next call goes first: handlers that never wait keep the
        # loop until all are worked, and the server would have nothing to do meanwhile.
        self._rouse(0 if len(attempts) <= len(self._idle) else TURNS_TO_SEND)

    def _rouse(self, turns: int) -> None:
        """Wake idle slots, after so many turns of the loop."""
        if turns:
            asyncio.get_running_loop().call_soon(self._rouse, turns - 1)
        elif not self.is_closed:
            for _ in range(min(len(self.waiting), len(self._idle))):
                _set(self._idle.popleft())

    def _limit(self) -> int:
        """Fetch ahead in halves: one is worked while the other is on its way."""
        free = (self._settings.concurrency - self.running) * self._unit
        is_full = len(self.held) > MAX_UNACKNOWLEDGED + free
        half = (self._prefetch + 1) // 2
        if is_full or len(self.waiting) > free + half:
            return 0
        return min(free + half, free + self._prefetch - len(self.waiting), MAX_FETCH)

    # The slots' side.

    async def arrival(self) -> None:
        """Wait until there may be something to work."""
        future = asyncio.get_running_loop().create_future()
        self._idle.append(future)
        try:
            await future
        except asyncio.CancelledError:
            # Nobody would hear it.
            with contextlib.suppress(ValueError):
                self._idle.remove(future)
            raise

    def begin(self, attempts: list[Attempt]) -> None:
        """A slot is taken."""
        self.running += 1
        self._started += len(attempts)

    def vacate(self) -> None:
        """A slot is free again."""
        self.running -= 1
        self._make_room()

    async def quiet(self) -> None:
        """Wait until no handler runs."""
        while self.running:
            await self._change()

    # At the end of leases.

    def forget(self, attempt: Attempt) -> None:
        """Nothing more is to be said about this one."""
        self.held.discard(attempt)
        self._make_room()

    def unstarted(self) -> list[Attempt]:
        """Take out what no slot has begun."""
        attempts = list(self.waiting)
        self.waiting.clear()
        return attempts

    def close(self) -> None:
        """Let no slot begin anything more."""
        self.is_closed = True

    async def _change(self) -> None:
        """Wait until a slot or a place is free; only one waits at a time."""
        self._room = asyncio.get_running_loop().create_future()
        await self._room

    def _make_room(self) -> None:
        if self._room is not None:
            _set(self._room)
            self._room = None


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
