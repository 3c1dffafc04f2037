"""Extends all leases of the process with one heartbeat call."""

import asyncio
import math
import time
from typing import TYPE_CHECKING

from lonnymq.calls.acknowledge import heartbeat
from lonnymq.calls.statement import pick
from lonnymq.client.aio.caller import MAX_BATCH
from lonnymq.client.attempt_state import mark_sent
from lonnymq.connections.backoff import Backoff
from lonnymq.model.acknowledge import HeartbeatOutcome
from lonnymq.worker.timeouts import call_within
from lonnymq.worker.verdict import GIVEN_BACK, Interruption
from lonnymq.worker.worker_log import LOGGER

if TYPE_CHECKING:
    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.model import Progress
    from lonnymq.worker.acknowledger import Acknowledger
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.inventory import Inventory
    from lonnymq.worker.worker_log import WorkerLog

HEARTBEATS_PER_LEASE = 3
# Warn if the event loop was blocked for longer than this.
MAX_BLOCKED_S = 1.0


class LeaseKeeper:
    """Interrupts handlers whose lease was lost, or may have been."""

    def __init__(
        self,
        caller: "AsyncCaller",
        inventory: "Inventory",
        acknowledger: "Acknowledger",
        log: "WorkerLog",
        lease_ms: int,
    ) -> None:
        self._caller = caller
        self._inventory = inventory
        self._acknowledger = acknowledger
        self._log = log
        self._lease_ms = lease_ms
        self._interval_s = lease_ms / 1000 / HEARTBEATS_PER_LEASE
        self._backoff = Backoff(max_s=self._interval_s / 2)

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        pause_s = self._interval_s
        while True:
            slept_at = time.monotonic()
            await asyncio.sleep(pause_s)
            self._warn_if_loop_was_blocked(time.monotonic() - slept_at - pause_s)
            pause_s = await self._extend_all()

    async def start_exclusive(self, attempt: "Attempt") -> bool:
        """Tell the queue that this message runs alone from now on; return whether its lease is still ours."""
        asked_at = time.monotonic()
        message = attempt.message
        call = heartbeat([message.id], [message.token], self._lease_ms, is_alone=True, is_durable=False)
        answers = await call_within(self._caller.source, self._interval_s, self._caller.perform(call))
        if answers == [HeartbeatOutcome.EXTENDED]:
            attempt.leased_until = asked_at + self._lease_ms / 1000
            return True
        return False

    async def _extend_all(self) -> float:
        """Extend every lease that needs it; return the pause until the next heartbeat."""
        attempts = [
            one for one in self._inventory.held if not (one.state.is_acknowledged or one.state.acknowledging)
        ]
        pause_s = self._interval_s
        try:
            if attempts:
                await self._extend(attempts)
                self._log.log_recovery("heartbeat")
                self._backoff.reset()
        except Exception as error:  # noqa: BLE001 - the worker continues after any error
            self._log.log_failure("heartbeat", error)
            pause_s = self._backoff.next_s()
        self._lose_expired()
        return pause_s

    async def _extend(self, attempts: "list[Attempt]") -> None:
        asked_at = time.monotonic()
        soonest = min((one.leased_until for one in attempts if not one.state.outcome), default=math.inf)
        timeout_s = min(self._interval_s, max(soonest - asked_at, self._interval_s / 10))
        ids = [attempt.message.id for attempt in attempts]
        tokens = [attempt.message.token for attempt in attempts]
        progress = [attempt.state.unsent_progress for attempt in attempts]
        sending = self._send_heartbeats(ids, tokens, progress)
        answers = await call_within(self._caller.source, timeout_s, sending)
        mark_sent([attempt.state for attempt in attempts], progress, answers)
        for attempt, answer in zip(attempts, answers, strict=True):
            if answer is HeartbeatOutcome.EXTENDED:
                attempt.leased_until = asked_at + self._lease_ms / 1000
            elif answer is HeartbeatOutcome.LEASE_LOST:
                self._lose(attempt, Interruption.LOST)
            elif answer is HeartbeatOutcome.CANCELLED:
                self._lose(attempt, Interruption.CANCELLED)

    async def _send_heartbeats(
        self, ids: list[int], tokens: list[int], progress: "list[Progress | None]"
    ) -> list[HeartbeatOutcome]:
        """Ask once per lease: one that a handler's transaction has locked must not hold up the others."""
        answers: list[HeartbeatOutcome] = []
        for start in range(0, len(ids), MAX_BATCH):
            batch = range(start, min(start + MAX_BATCH, len(ids)))
            # Not durable, or calls would wait while a synchronous standby is down, and leases would end.
            call = heartbeat(
                pick(ids, batch),
                pick(tokens, batch),
                self._lease_ms,
                is_durable=False,
                progress=pick(progress, batch),
            )
            some = await self._caller.perform(call)
            answers.extend(some)
        return answers

    def _lose_expired(self) -> None:
        """Treat a lease as lost if it was not extended in time."""
        now = time.monotonic()
        for attempt in [one for one in self._inventory.held if one.leased_until <= now]:
            self._lose(attempt, Interruption.LOST)

    def _lose(self, attempt: "Attempt", why: Interruption) -> None:
        is_ending = (
            attempt.ended_at or attempt.state.outcome or attempt.state.acknowledging or attempt.interruption
        )
        if is_ending or attempt not in self._inventory.held:
            # The answer to its acknowledgement says the same, or the loss is known already.
            return
        attempt.state.is_lost, attempt.interruption, attempt.leased_until = True, why, 0.0
        self._log.log_lost_lease(attempt, why)
        slot = attempt.slot
        if why is Interruption.LOST:
            self._inventory.remove(attempt)
        elif slot is None:
            self._acknowledger.add(attempt, GIVEN_BACK)
        if slot is not None:
            slot.interrupt_if_lost()

    def _warn_if_loop_was_blocked(self, blocked_s: float) -> None:
        if blocked_s > MAX_BLOCKED_S:
            LOGGER.warning(
                "the event loop was blocked for %.1f s, heartbeats were late: a handler that blocks must be a"
                " plain function, not an async one",
                blocked_s,
                extra={"worker": self._log.worker},
            )
