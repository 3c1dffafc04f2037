"""A slot runs one handler at a time, for one attempt after another."""

import asyncio
import contextlib
import math
import time
from typing import TYPE_CHECKING

from lonnymq.worker.failure_hooks import FailureHooks, is_notice, loss_before
from lonnymq.worker.handler import Handler
from lonnymq.worker.verdict import (
    COMPLETED,
    GIVEN_BACK,
    NO_ACTION,
    Interruption,
    Judge,
    Verdict,
    failure,
    success,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.failure_hooks import Report
    from lonnymq.worker.inventory import Inventory
    from lonnymq.worker.middleware import MiddlewareStack
    from lonnymq.worker.router import Router

    Acknowledge = Callable[[Attempt, Verdict], None]
    # Prepares a message that must run alone, and returns whether it may run.
    PrepareExclusive = Callable[[Attempt], Awaitable[bool]]

# Handlers that never wait let other tasks run, such as heartbeats, after this time.
MAX_LOOP_HOLD_S = 0.01


class Slot:
    """One task for all attempts of the slot: a handler that never waits costs no task switch."""

    def __init__(
        self,
        inventory: "Inventory",
        router: "Router",
        middleware: "MiddlewareStack",
        judge: Judge,
        acknowledge: "Acknowledge",
        prepare_exclusive: "PrepareExclusive",
    ) -> None:
        self._inventory = inventory
        self._router = router
        self._middleware = middleware
        self._judge = judge
        self._acknowledge = acknowledge
        self._prepare_exclusive = prepare_exclusive
        self._hooks = FailureHooks(middleware, self._end_attempt)
        self._attempts: list[Attempt] = []
        self._handler: Handler | None = None
        self._interruption: Interruption | None = None
        self._is_closing = False
        # When the time limit of the handler that runs ends, by the monotonic clock; inf without either.
        self.due_at = math.inf
        self.task = asyncio.create_task(self._run_until_closed())

    @property
    def has_attempts(self) -> bool:
        """Whether attempts are running; a handler that hangs in a thread may have outlived its own."""
        return bool(self._attempts)

    def interrupt(self, why: Interruption) -> None:
        """Stop the handler. A thread cannot be stopped, so the attempt of its handler ends at once."""
        if self._handler is None:
            if self._attempts:
                # A message that must run alone is being prepared.
                self.task.cancel()
            return
        if self._interruption is not None:
            return
        self._interruption = why
        is_lost = all(attempt.interruption is Interruption.LOST for attempt in self._attempts)
        if self._handler.is_async:
            self.task.cancel()
        elif is_lost or why in (Interruption.TIMED_OUT, Interruption.STOPPED):
            self._end_attempts(asyncio.CancelledError())

    def interrupt_if_lost(self) -> None:
        """Stop the handler if every message that it has was lost or cancelled."""
        if all(attempt.interruption for attempt in self._attempts):
            self.interrupt(Interruption.LOST)

    def abandon(self) -> bool:
        """End the attempts of a handler that does not stop; return whether it keeps the loop from ending."""
        if not self.has_attempts or self._handler is None:
            return False
        self._end_attempts(asyncio.CancelledError())
        return self._handler.is_async

    async def close(self) -> None:
        """End the task, even while a handler runs."""
        self._is_closing = True
        self.task.cancel()
        self._hooks.cancel()
        await asyncio.wait({self.task}, timeout=1.0)

    async def _run_until_closed(self) -> None:
        while not self._is_closing:
            try:
                await self._run_attempts()
            except asyncio.CancelledError:
                if self._is_closing:
                    raise
                # Caused by something that a handler left behind; later attempts must not notice it.
                await self._clear_cancellation()

    async def _run_attempts(self) -> None:
        inventory = self._inventory
        resumed_at = time.monotonic()
        while not self._is_closing:
            if not inventory.has_work:
                await inventory.wait_for_work()
                resumed_at = time.monotonic()
            elif inventory.can_start_exclusive:
                await self._run_exclusive()
            elif self._start_next():
                await self._run_handler()
                if time.monotonic() - resumed_at > MAX_LOOP_HOLD_S:
                    await asyncio.sleep(0)
                    resumed_at = time.monotonic()

    def _start_next(self) -> bool:
        """Assign the next message, and for a batch handler those behind it; return whether there was one."""
        attempts: list[Attempt] = []
        handler = None
        waiting, limit = self._inventory.waiting, 1
        while waiting and len(attempts) < limit:
            admitted = self._admit(waiting[0])
            if isinstance(admitted, Handler):
                if handler is not None and handler is not admitted:
                    break
                handler = admitted
                limit = self._inventory.batch_size if handler.is_batch else 1
                attempts.append(waiting.popleft())
            else:
                self._end_unstarted(waiting.popleft(), admitted)
        if handler is None:
            return False
        self._inventory.occupy_slot()
        self._assign(attempts, handler)
        return True

    async def _run_exclusive(self) -> None:
        """Run the message that must run alone: nothing else runs in the process until it has ended."""
        inventory = self._inventory
        attempt = inventory.exclusive.start()
        inventory.occupy_slot()
        self._attempts = [attempt]
        admitted: Handler | Verdict = GIVEN_BACK
        try:
            if await self._prepare_exclusive(attempt):
                admitted = self._admit(attempt)
            if isinstance(admitted, Handler):
                self._assign([attempt], admitted)
                await self._run_handler()
        finally:
            if not isinstance(admitted, Handler):
                self._attempts = []
                self._end_unstarted(attempt, admitted)
                inventory.finish_attempts()
                inventory.release_slot(1)

    def _admit(self, attempt: "Attempt") -> Handler | Verdict:
        return self._router.admit(attempt.message) if attempt.leased_until > time.monotonic() else NO_ACTION

    def _assign(self, attempts: "list[Attempt]", handler: Handler) -> None:
        now = time.monotonic()
        self._attempts, self._handler, self._interruption = attempts, handler, None
        for attempt in attempts:
            attempt.slot, attempt.handler, attempt.started_at = self, handler, now

    async def _run_handler(self) -> None:
        handler = self._handler
        assert handler is not None
        messages = [attempt.message for attempt in self._attempts]
        timer = None
        error: BaseException | None = None
        try:
            if handler.on_failure is not None:
                await self._hooks.report_losses(handler, messages)
                if self._interruption is not None:
                    # A handler in a thread is not cancelled, so it must not start.
                    raise asyncio.CancelledError
            if handler.timeout_s is not None:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(handler.timeout_s, self.interrupt, Interruption.TIMED_OUT)
                self.due_at = timer.when()
            await self._middleware.run(handler, messages)
        except GeneratorExit:
            raise
        except BaseException as raised:
            if self._is_closing:
                raise
            error = raised
        finally:
            if timer is not None:
                timer.cancel()
                self.due_at = math.inf
        if self.task.cancelling():
            await self._clear_cancellation()
        self._end_attempts(error)
        while self._hooks.is_reporting:
            await self._wait_for_reports()
        self._handler = None
        self._inventory.release_slot(len(messages))

    async def _clear_cancellation(self) -> None:
        """Undo a cancellation that was meant for a handler which has ended, not for the next one."""
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        while self.task.cancelling():
            self.task.uncancel()

    def _end_attempts(self, error: BaseException | None) -> None:
        """Judge each attempt, unless that was done when the handler was interrupted."""
        attempts, self._attempts = self._attempts, []
        if not attempts:
            return
        handler = self._handler
        assert handler is not None
        reports: list[Report] = []
        now = time.monotonic()
        for attempt in attempts:
            attempt.slot, attempt.ended_at = None, now
            why = attempt.interruption or self._interruption
            if error is None and why is None:
                self._acknowledge(attempt, success(attempt.message, attempt.state))
                continue
            verdict = self._judge.verdict(handler, attempt.message.attempt, error, why)
            if verdict is COMPLETED:
                # It was interrupted, and has finished nevertheless.
                verdict = success(attempt.message, attempt.state)
            verdict = verdict.with_state(attempt.state.failure_state)
            failed = None if handler.on_failure is None else failure(handler, error, why)
            if failed is None or is_notice(attempt.message) or attempt.state.is_acknowledged:
                self._end_attempt(attempt, verdict)
            else:
                reports.append((attempt, failed, verdict))
        if reports:
            self._hooks.report(handler, reports, self._inventory.finish_attempts)
        else:
            self._inventory.finish_attempts()

    def _end_attempt(self, attempt: "Attempt", verdict: Verdict) -> None:
        self._acknowledge(attempt, verdict)
        if not verdict.is_success:
            # A handler that still runs in a thread sees that its result will not count.
            attempt.state.is_lost = True

    def _end_unstarted(self, attempt: "Attempt", verdict: Verdict) -> None:
        """End an attempt that no handler has started."""
        loss = None if verdict.handler is None else loss_before(attempt.message)
        if verdict.handler is None or loss is None:
            self._acknowledge(attempt, verdict)
        else:
            self._hooks.report(verdict.handler, [(attempt, loss, verdict)])

    async def _wait_for_reports(self) -> None:
        """Keep the slot occupied, so that no more hooks run than there are slots."""
        try:
            await self._hooks.wait()
        except asyncio.CancelledError:
            if self._is_closing:
                raise
            await self._clear_cancellation()
