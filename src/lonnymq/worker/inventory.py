"""The leases that one process holds, from the dequeue to the queue's last answer."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from lonnymq.model.lease import Content, fill
from lonnymq.worker.attempt import Attempt
from lonnymq.worker.exclusive_run import ExclusiveRun
from lonnymq.worker.settings import WorkerSettings
from lonnymq.worker.wakeup import Wakeup

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.model import Dequeued

# A message that has not started after this long goes back, so that another worker can start it.
START_WITHIN_S = 0.1
# Without a setting, a worker leases ahead as much as it works in this time, about that of a call.
PREFETCH_S = 0.02
MAX_PREFETCH = 400
# The most that one call returns.
MAX_FETCH = 500
# Turns of the loop, from the decision to fetch until the call is on its way.
TURNS_TO_SEND = 2
# With this many attempts ended and not yet acknowledged, fetch no more.
MAX_UNACKNOWLEDGED = 2_000
# Contents are read in groups of this many bytes, or one by one.
READ_BYTES = 1024 * 1024
# A message whose content did not fit is expected back within this time.
FIRST_REFUSED_S = 10.0
# Until fetching again what this process has no memory or no time for at the moment.
PAUSE_S = 0.1


class Inventory:
    """Every lease of the process: unread, waiting for a slot, in one, or ended and not yet acknowledged."""

    def __init__(
        self, settings: WorkerSettings, is_batch: bool, give_back: Callable[[Attempt, str], None]
    ) -> None:
        self.held: set[Attempt] = set()
        self.unread: deque[Attempt] = deque()
        self.being_read: list[Attempt] = []
        self.waiting: deque[Attempt] = deque()
        self.exclusive: ExclusiveRun[Attempt] = ExclusiveRun(self._exclusive_changed, give_back)
        # Slots whose handler has not returned, and those of them whose attempt has not ended either.
        self.occupied_slots = 0
        self.active_slots = 0
        # No slot begins anything more.
        self.is_closed = False
        self.batch_size = settings.batch_size
        self._settings = settings
        self._give_back = give_back
        self._unit = settings.batch_size if is_batch else 1
        self._prefetch = settings.prefetch or 0
        self._reserved_bytes = 0
        # The message whose content did not fit, and until when others must not take its room.
        self._first_refused: tuple[int | None, float] = (None, 0.0)
        self._reading_since = 0.0
        # Since the last messages came.
        self._started = 0
        self._taken_at = time.monotonic()
        self._is_paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._idle: deque[asyncio.Future[None]] = deque()
        self._room = Wakeup()
        self._reading = Wakeup()
        self._ending = Wakeup()

    # The fetcher's side.

    async def wait_for_capacity(self) -> int:
        """Wait until there is room for more, and return for how many."""
        while (limit := self._limit()) < 1:
            await self._room.wait()
        return limit

    def add(self, reply: "Dequeued[AsyncMessage]") -> None:
        """Take what was leased, and wake the slots that have nothing to do."""
        now = time.monotonic()
        self._measure(now)
        # The reply may have been on its way for a while; the first heartbeat knows better.
        leased_until = now + self._settings.lease_ms / 1000
        attempts = [Attempt(message, now, leased_until) for message in reply.leases]
        self.held.update(attempts)
        if reply.unread or any(attempt.message.suspicion for attempt in attempts):
            attempts = self._sort(attempts, reply)
        self.waiting.extend(attempts)
        # If they are more than can begin at once, the next call goes first: handlers that never wait keep the
        # loop until all are worked, and the server would have nothing to do meanwhile.
        self._wake_slots(0 if len(attempts) <= len(self._idle) else TURNS_TO_SEND)
        self._start_timer()
        if self.unread:
            self._reading.wake()

    def _measure(self, now: float) -> None:
        """Lease ahead no more than was started lately in the time a message may wait here."""
        per_s = self._started / max(now - self._taken_at, 0.0001)
        wish = self._settings.prefetch
        if wish is None:
            wish = min(int(per_s * PREFETCH_S), MAX_PREFETCH)
        self._prefetch = min(wish, int(per_s * START_WITHIN_S))
        self._started, self._taken_at = 0, now

    def _sort(self, attempts: list[Attempt], reply: "Dequeued[AsyncMessage]") -> list[Attempt]:
        """Set aside what must be read first or must run alone, and give back what there is no room for."""
        ready = []
        refused = 0
        for attempt in attempts:
            size = attempt.unread_bytes = reply.unread.get(attempt.message.id, 0)
            reason = ""
            if attempt.is_suspect or size > self._settings.max_bytes:
                if not self.exclusive.try_hold(attempt):
                    reason = "a message that must run alone has to wait"
            elif not size:
                ready.append(attempt)
            elif self._is_affordable(attempt):
                self.reserve(attempt, size)
                self.unread.append(attempt)
            else:
                reason = f"contents take {self._reserved_bytes} of max_bytes ({self._settings.max_bytes})"
            if reason:
                refused += 1
                self._give_back(attempt, reason)
        if refused == len(attempts):
            # Nothing but these at the moment: asking again at once would bring the same.
            self._pause()
        return ready

    def _is_affordable(self, attempt: Attempt) -> bool:
        """Whether the content fits into the budget; smaller ones wait for the first that does not."""
        now = time.monotonic()
        first, until = self._first_refused
        if first not in (None, attempt.message.id) and now < until:
            return False
        if self._reserved_bytes + attempt.unread_bytes <= self._settings.max_bytes:
            self._first_refused = (None, 0.0)
            return True
        self._first_refused = (attempt.message.id, now + FIRST_REFUSED_S)
        return False

    def reserve(self, attempt: Attempt, size: int) -> None:
        """Count bytes that an attempt has in memory, until the queue has answered for it."""
        attempt.reserved_bytes += size
        self._reserved_bytes += size

    def _limit(self) -> int:
        """Fetch ahead in halves: one is worked while the other is on its way."""
        if self._is_paused or self.exclusive.is_active or self._reserved_bytes > self._settings.max_bytes:
            return 0
        free = (self._settings.concurrency - self.occupied_slots) * self._unit
        is_full = len(self.held) > MAX_UNACKNOWLEDGED + free
        half = (self._prefetch + 1) // 2
        queued = len(self.waiting) + len(self.unread) + len(self.being_read)
        if is_full or queued > free + half:
            return 0
        return min(free + half, free + self._prefetch - queued, MAX_FETCH)

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            asyncio.get_running_loop().call_later(PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._is_paused = False
        self._room.wake()

    # The reader's side.

    async def next_unread(self) -> list[Attempt]:
        """Wait for messages whose content is to be read, and return a group of bounded size."""
        while not self.unread:
            await self._reading.wait()
        group = self.being_read
        self._reading_since = time.monotonic()
        size = 0
        while self.unread and (not group or size + self.unread[0].unread_bytes <= READ_BYTES):
            size += self.unread[0].unread_bytes
            group.append(self.unread.popleft())
        return group

    def add_contents(self, contents: dict[int, Content]) -> None:
        """What was read is here; one without was cancelled, or its lease is lost: the queue says which."""
        now = time.monotonic()
        # What took long to read may wait as long for a slot.
        waiting_since = now + (now - self._reading_since)
        attempts, self.being_read = self.being_read, []
        for attempt in attempts:
            if attempt.message.id in contents:
                fill(attempt.message, contents[attempt.message.id])
                attempt.waiting_since = waiting_since
                self.waiting.append(attempt)
            else:
                self._give_back(attempt, "it was cancelled, or its lease is lost")
        self._wake_slots(0)
        self._start_timer()

    def give_back_unread(self) -> None:
        """Give back what could not be read; whoever can read it may have it."""
        attempts, self.being_read = self.being_read, []
        for attempt in attempts:
            self._give_back(attempt, "contents cannot be read")
        self._pause()

    # The slots' side.

    @property
    def can_start_exclusive(self) -> bool:
        """Whether the message that must run alone can start: nothing else runs."""
        return self.exclusive.is_waiting and not (self.occupied_slots or self.is_closed)

    @property
    def has_work(self) -> bool:
        """Whether a slot can begin something."""
        if self.waiting and not (self.is_closed or self.exclusive.is_active):
            return True
        return self.can_start_exclusive

    async def wait_for_work(self) -> None:
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

    def occupy_slot(self, count: int) -> None:
        """A slot is taken, by this many attempts."""
        self.occupied_slots += 1
        self.active_slots += 1
        self._started += count

    def finish_attempts(self) -> None:
        """The attempts of a slot have ended; the handler may go on in its thread."""
        self.active_slots -= 1
        self._ending.wake()

    def release_slot(self) -> None:
        """A slot is free again."""
        self.occupied_slots -= 1
        self._room.wake()
        if self.exclusive.is_waiting:
            self._wake_slots(0)
        elif self.exclusive.running is not None:
            self._finish_exclusive(self.exclusive.running)

    def _wake_slots(self, turns: int) -> None:
        """Wake idle slots, after this many turns of the loop."""
        if turns:
            asyncio.get_running_loop().call_soon(self._wake_slots, turns - 1)
        elif self.has_work:
            count = 1 if self.can_start_exclusive else len(self.waiting)
            for _ in range(min(count, len(self._idle))):
                _set(self._idle.popleft())

    # The clock's side.

    def _start_timer(self) -> None:
        if self._timer is None and (self.waiting or self.unread):
            since = min(attempt.waiting_since for attempt in (*self.waiting, *self.unread))
            delay_s = max(0.001, since + START_WITHIN_S - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._give_back_unstarted)

    def _give_back_unstarted(self) -> None:
        """Let other workers have what this process could not start in time, and lease no more than it can."""
        self._timer = None
        until = time.monotonic() - START_WITHIN_S
        queued = [*self.waiting, *self.unread]
        late = {attempt.message.channel for attempt in queued if attempt.waiting_since <= until}
        if late:
            self._prefetch = 0
            if any(attempt.waiting_since <= until for attempt in self.unread):
                # Contents are read too slowly to fetch more of them at once.
                self._pause()
            for some in (self.waiting, self.unread):
                kept = [attempt for attempt in some if attempt.message.channel not in late]
                some.clear()
                some.extend(kept)
            reason = f"{self.occupied_slots} of {self._settings.concurrency} slots are busy"
            for attempt in queued:
                # Those of the same channel that came later go too: they must not start before these.
                if attempt.message.channel in late:
                    self._give_back(attempt, reason)
        self._start_timer()

    # At the end of leases.

    def remove(self, attempt: Attempt) -> None:
        """Nothing more is to be said about this one."""
        self.held.discard(attempt)
        self._reserved_bytes -= attempt.reserved_bytes
        attempt.reserved_bytes = 0
        self.exclusive.discard(attempt)
        self._room.wake()
        if self.exclusive.running is attempt:
            self._finish_exclusive(attempt)
        if not self.held:
            self._ending.wake()

    def take_unstarted(self) -> list[Attempt]:
        """Take out what no slot has begun."""
        attempts = [*self.waiting, *self.unread, *self.being_read, *self.exclusive.withdraw()]
        self.waiting.clear()
        self.unread.clear()
        self.being_read = []
        return attempts

    def close(self) -> None:
        """Let no slot begin anything more."""
        self.is_closed = True

    async def wait_until_idle(self) -> None:
        """Wait until every attempt that was begun has ended."""
        while self.active_slots:
            await self._ending.wait()

    async def wait_until_empty(self) -> None:
        """Wait until the queue has answered for everything."""
        while self.held:
            await self._ending.wait()

    def _finish_exclusive(self, attempt: Attempt) -> None:
        """Let others start once its handler has returned and the queue has answered, whichever comes last."""
        if not self.occupied_slots and attempt not in self.held:
            self.exclusive.finish()

    def _exclusive_changed(self) -> None:
        self._room.wake()
        self._wake_slots(0)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
