"""The leases of one process, from the dequeue to the queue's answer to the acknowledgement."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from lonnymq.model.lease import Content, set_content
from lonnymq.worker.attempt import Attempt
from lonnymq.worker.exclusive_run import ExclusiveRun
from lonnymq.worker.give_backs import GiveBacks
from lonnymq.worker.memory_budget import MemoryBudget
from lonnymq.worker.prefetch import START_WITHIN_S, Prefetch
from lonnymq.worker.reply_limit import ReplyLimit
from lonnymq.worker.settings import WorkerSettings
from lonnymq.worker.unread_contents import UnreadContents
from lonnymq.worker.wakeup import Wakeup, WakeupQueue

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.model import Dequeued

# Iterations of the event loop from the arrival of a reply until the next call has been sent.
ITERATIONS_TO_SEND = 3
# Fetch nothing while this many attempts have ended and are not acknowledged yet.
MAX_UNACKNOWLEDGED = 2_000
# How long to wait before fetching again what this process has no memory or no time for.
PAUSE_S = 0.1


class Inventory:
    """Each lease is unread, waiting for a slot, in a slot, or ended and not acknowledged yet."""

    def __init__(
        self, settings: WorkerSettings, is_batch: bool, give_back: Callable[[Attempt, str], None]
    ) -> None:
        # Every attempt whose lease this process holds.
        self.held: set[Attempt] = set()
        self.unread = UnreadContents()
        self.waiting: deque[Attempt] = deque()
        self.exclusive: ExclusiveRun[Attempt] = ExclusiveRun(self._exclusive_changed, give_back)
        self.memory = MemoryBudget(settings.max_bytes, self._give_back_in_order)
        self._give_backs = GiveBacks(self._wake_fetching, give_back)
        # Slots whose handler has not returned, and those of them whose attempts have not ended either.
        self.occupied_slots = 0
        self.active_slots = 0
        # Once closed, no slot starts another attempt.
        self.is_closed = False
        self.batch_size = settings.batch_size
        self._settings = settings
        self._give_back = give_back
        self._messages_per_slot = settings.batch_size if is_batch else 1
        self._prefetch = Prefetch(
            settings.prefetch, settings.concurrency * self._messages_per_slot, time.monotonic()
        )
        self._reply_limit = ReplyLimit()
        self._leased = count()
        # When the queue last answered a call, by the monotonic clock; 0.0: never.
        self.fetched_at = 0.0
        # When the process last could not hold more messages, and had nothing to ask for.
        self.full_at = 0.0
        self._pause: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle_slots = WakeupQueue()
        self._capacity_changed = Wakeup()
        self._attempt_ended = Wakeup()

    # For the task that fetches.

    async def wait_for_capacity(self, for_s: float) -> int:
        """Wait until the process can hold more messages, and return how many; 0 after this time."""
        deadline = time.monotonic() + for_s
        while (capacity := self._capacity()) < 1:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                self.full_at = time.monotonic()
                return 0
            await self._capacity_changed.wait(left_s)
        self._give_backs.call_starts()
        self._prefetch.start_call(time.monotonic())
        return capacity

    def add(self, reply: "Dequeued[AsyncMessage]") -> None:
        """Take over leased messages, and wake idle slots."""
        now = self.fetched_at = time.monotonic()
        self._prefetch.add_reply(now, len(reply.leases))
        self._reply_limit.adapt(reply)
        # An estimate, because the reply may have taken a while; the first heartbeat corrects it.
        leased_until = now + self._settings.lease_ms / 1000
        attempts = [Attempt(message, next(self._leased), now, leased_until) for message in reply.leases]
        self.held.update(attempts)
        attempts = self._give_backs.give_back_successors(attempts)
        if reply.unread or any(attempt.message.suspicion for attempt in attempts):
            attempts = self._sort(attempts, reply)
        self.waiting.extend(attempts)
        # With more messages than idle slots, send the next call first. Handlers that never wait occupy the
        # loop until all messages are processed, and the server would be idle meanwhile.
        self._wake_slots(0 if len(attempts) <= len(self._idle_slots) else ITERATIONS_TO_SEND)
        self._start_timer()

    @property
    def free_places(self) -> int:
        """How many more messages could start now."""
        free_slots = self._settings.concurrency - self.occupied_slots
        return free_slots * self._messages_per_slot - len(self.waiting) - self.unread.count

    def _capacity(self) -> int:
        """Once half of the prefetch is left, fill it up: that half is processed during the call."""
        if self._pause is not None or self._give_backs.is_pending:
            return 0
        if self.exclusive.is_active or self.memory.is_exceeded:
            return 0
        free, prefetch = self.free_places, self._prefetch.limit
        is_full = len(self.held) > MAX_UNACKNOWLEDGED + max(free, 0)
        if is_full or free + (prefetch + 1) // 2 < 0:
            return 0
        return min(free + prefetch, self._reply_limit.messages)

    def _sort(self, attempts: list[Attempt], reply: "Dequeued[AsyncMessage]") -> list[Attempt]:
        """Return messages that can start; set aside the unread and the exclusive, give back the rest."""
        ready = []
        given_back = 0
        for attempt in attempts:
            size = attempt.unread_bytes = reply.unread.get(attempt.message.id, 0)
            reason = ""
            if attempt.is_suspect or size > self.memory.max_bytes:
                if self.occupied_slots > self.active_slots:
                    reason = (
                        "a message must run alone, and a handler still runs although its attempt has ended"
                    )
                elif not self.exclusive.try_hold(attempt):
                    reason = "a message that must run alone has to wait"
            elif not size:
                ready.append(attempt)
            elif self.memory.try_reserve(attempt):
                self.unread.add(attempt)
            elif not self.memory.try_wait(attempt):
                reason = self.memory.shortage
            if reason:
                given_back += 1
                self._give_backs.give_back([attempt], reason)
        if given_back == len(attempts):
            # Fetching again at once would return the same messages.
            self._pause_fetching()
        return ready

    def _pause_fetching(self) -> None:
        if self._pause is None:
            self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self._resume_fetching)

    def _resume_fetching(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._wake_fetching()

    def _wake_fetching(self) -> None:
        self._capacity_changed.wake()

    # For the task that reads large contents.

    def add_contents(self, contents: dict[int, Content]) -> None:
        """Let messages start whose content was read."""
        attempts, took_s = self.unread.end_batch()
        # A content that took long to read may wait for a slot as much longer.
        waiting_since = time.monotonic() + took_s
        for attempt in attempts:
            if attempt.message.id in contents:
                set_content(attempt.message, contents[attempt.message.id])
                attempt.waiting_since = waiting_since
                self.waiting.append(attempt)
            else:
                self._give_back(attempt, "a message was cancelled, or its lease was lost")
        self._wake_slots(0)
        self._start_timer()

    def give_back_unread(self) -> None:
        """Give back messages whose content could not be read, so that another worker can try."""
        attempts, _ = self.unread.end_batch()
        self._give_back_in_order(attempts, "contents cannot be read")
        self._pause_fetching()

    # For slots.

    @property
    def can_start_exclusive(self) -> bool:
        """Whether the message that must run alone can start, because no slot is occupied."""
        return self.exclusive.is_waiting and not (self.occupied_slots or self.is_closed)

    @property
    def has_work(self) -> bool:
        """Whether a slot can start an attempt."""
        if self.waiting and not (self.is_closed or self.exclusive.is_active):
            return True
        return self.can_start_exclusive

    async def wait_for_work(self) -> None:
        """Wait until there may be an attempt to start."""
        await self._idle_slots.wait()

    def occupy_slot(self) -> None:
        """Count a slot that starts messages."""
        self.occupied_slots += 1
        self.active_slots += 1

    def finish_attempts(self) -> None:
        """Count a slot whose attempts have ended; its handler may still run in a thread."""
        self.active_slots -= 1
        if not self.active_slots:
            self._attempt_ended.wake()

    def release_slot(self, messages: int) -> None:
        """Count a slot whose handler has returned, after it had this many messages."""
        self.occupied_slots -= 1
        self._prefetch.count_processed(messages)
        if not (self.occupied_slots or self.waiting):
            self._prefetch.end_work(time.monotonic())
        self._capacity_changed.wake()
        if self.exclusive.is_waiting:
            self._wake_slots(0)
        elif self.exclusive.running is not None:
            self._finish_exclusive(self.exclusive.running)

    def _wake_slots(self, after_iterations: int) -> None:
        """Wake idle slots, after this many iterations of the event loop."""
        if after_iterations:
            asyncio.get_running_loop().call_soon(self._wake_slots, after_iterations - 1)
        elif self.has_work:
            self._idle_slots.wake(1 if self.can_start_exclusive else len(self.waiting))

    # For messages that do not start in time.

    def _start_timer(self) -> None:
        if self._timer is None and (self.waiting or self.unread.waiting):
            since = min(attempt.waiting_since for attempt in (*self.waiting, *self.unread.waiting))
            delay_s = max(0.001, since + START_WITHIN_S - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._give_back_late)

    def _give_back_late(self) -> None:
        """Give back messages that have waited too long, and lease fewer from now on."""
        self._timer = None
        until = time.monotonic() - START_WITHIN_S
        late = [attempt for attempt in self.waiting if attempt.waiting_since <= until]
        late_unread = [attempt for attempt in self.unread.waiting if attempt.waiting_since <= until]
        if late or late_unread:
            self._prefetch.suspend()
            if late_unread:
                # Contents are read too slowly to fetch more of them now.
                self._pause_fetching()
            reason = f"{self.occupied_slots} of {self._settings.concurrency} slots are busy"
            self._give_back_in_order([*late, *late_unread], reason)
        self._start_timer()

    def _give_back_in_order(self, attempts: list[Attempt], reason: str) -> None:
        """Give back messages and the later ones of their channels, which must not start before them."""
        first: dict[str, int] = {}
        for attempt in attempts:
            channel = attempt.message.channel
            first[channel] = min(attempt.sequence, first.get(channel, attempt.sequence))

        def goes_back(attempt: Attempt) -> bool:
            return attempt.sequence >= first.get(attempt.message.channel, math.inf)

        unstarted = {*attempts, *self.waiting, *self.unread.take(goes_back)}
        if self.memory.waiting is not None and goes_back(self.memory.waiting):
            unstarted.update(self.memory.withdraw())
        self.waiting = deque(attempt for attempt in self.waiting if not goes_back(attempt))
        # Without those whose lease was lost meanwhile.
        gone = sorted(filter(goes_back, unstarted & self.held), key=lambda attempt: attempt.sequence)
        self._give_backs.give_back(gone, reason)

    # For the end of leases and of the worker.

    def remove(self, attempt: Attempt) -> None:
        """Drop an attempt that needs no acknowledgement any more."""
        self.held.discard(attempt)
        waiting = self.memory.release(attempt)
        if waiting is not None:
            self._read_at_last(waiting)
        self.exclusive.discard(attempt)
        self._give_backs.discard(attempt)
        self._capacity_changed.wake()
        if self.exclusive.running is attempt:
            self._finish_exclusive(attempt)
        if not self.held:
            self._attempt_ended.wake()

    def _read_at_last(self, attempt: Attempt) -> None:
        """Have a content read that has waited for memory, and fetch more: others may fit as well."""
        attempt.waiting_since = time.monotonic()
        self.unread.add(attempt)
        self._start_timer()
        self._resume_fetching()

    @property
    def unstarted_count(self) -> int:
        return len(self.waiting) + self.unread.count

    def take_unstarted(self) -> list[Attempt]:
        """Take out the attempts that no slot has started."""
        unread = [*self.unread.take(lambda attempt: True), *self.memory.withdraw()]
        attempts = [*self.waiting, *unread, *self.exclusive.withdraw()]
        self.waiting.clear()
        return attempts

    def close(self) -> None:
        """Let no slot start another attempt."""
        self.is_closed = True

    async def wait_until_idle(self) -> None:
        """Wait until every started attempt has ended."""
        while self.active_slots:
            await self._attempt_ended.wait()

    async def wait_until_empty(self) -> None:
        """Wait until the queue has answered every acknowledgement."""
        while self.held:
            await self._attempt_ended.wait()

    def _finish_exclusive(self, attempt: Attempt) -> None:
        """Let other messages start once the handler has returned and the queue has answered."""
        if not self.occupied_slots and attempt not in self.held:
            self.exclusive.finish()

    def _exclusive_changed(self) -> None:
        self._capacity_changed.wake()
        self._wake_slots(0)
