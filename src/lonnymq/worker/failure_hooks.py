"""Calls a handler's `on_failure` for each attempt that failed or was lost."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lonnymq.calls.headers import BURIED_ERROR, BURIED_EXPIRED, BURIED_ID
from lonnymq.client.attempt_state import AttemptState
from lonnymq.texts import one_line
from lonnymq.worker.handler import Handler, is_async_function
from lonnymq.worker.message_context import CURRENT
from lonnymq.worker.verdict import LeaseExpired, Verdict

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.middleware import MiddlewareStack

    # An attempt, what it failed with, and how it ends.
    Report = tuple[Attempt, BaseException, Verdict]

LOGGER = logging.getLogger("lonnymq.worker")

# A message is retried, or buried, at most this much later because of its hook.
HOOK_TIMEOUT_S = 10.0
# No lease has it.
NO_TOKEN = 0


class FailureHooks:
    """The hooks of a slot. Whatever they do, attempts end as they would without them."""

    def __init__(
        self, middleware: "MiddlewareStack", end_attempt: "Callable[[Attempt, Verdict], None]"
    ) -> None:
        self._middleware = middleware
        self._end_attempt = end_attempt
        self._reports: set[asyncio.Task[None]] = set()
        # Also those that did not end in time.
        self._calls: set[asyncio.Task[None]] = set()

    @property
    def is_reporting(self) -> bool:
        """Whether attempts have ended whose hooks still run."""
        return bool(self._reports)

    async def report_losses(self, handler: Handler, messages: "Sequence[AsyncMessage]") -> None:
        """Call the hook for earlier attempts at these messages that were lost."""
        for message in messages:
            if (loss := loss_before(message)) is not None:
                await self._call(handler, message, loss)

    def report(
        self, handler: Handler, reports: "Sequence[Report]", then: Callable[[], None] = lambda: None
    ) -> None:
        """Call the hook for attempts that have failed, and end each of them afterwards."""
        task = asyncio.create_task(self._report(handler, reports, then))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def wait(self) -> None:
        """Wait for reports that are running."""
        if self._reports:
            await asyncio.wait(self._reports)

    def cancel(self) -> None:
        """Stop reports; their attempts are not ended, so that they are lost."""
        for task in self._reports:
            task.cancel()

    async def _report(self, handler: Handler, reports: "Sequence[Report]", then: Callable[[], None]) -> None:
        try:
            for attempt, error, verdict in reports:
                await self._call(handler, attempt.message, error)
                self._end_attempt(attempt, verdict)
        finally:
            then()

    async def _call(self, handler: Handler, message: "AsyncMessage", error: BaseException) -> None:
        """Call the hook and wait for it, within a limit; what it raises is logged."""
        hook: Any = handler.on_failure
        if hook is None:
            return
        ended = _without_lease(message)

        async def call() -> None:
            try:
                await self._middleware.call(lambda one: hook(one, error), is_async_function(hook), ended)
            except (asyncio.CancelledError, GeneratorExit):
                raise
            except BaseException as raised:  # noqa: BLE001 - a task that raised SystemExit would end the loop
                _log(handler, message, f"{type(raised).__name__}: {raised}")

        context = copy_context()
        context.run(CURRENT.set, ended)
        task = asyncio.create_task(call(), context=context)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            await asyncio.wait({task}, timeout=HOOK_TIMEOUT_S)
            if not task.done():
                _log(handler, message, f"it took longer than {HOOK_TIMEOUT_S:g} s")
        finally:
            task.cancel()


def is_notice(message: "AsyncMessage") -> bool:
    """Whether this is the notice that another message was buried."""
    return message.headers_json is not None and BURIED_ID in message.headers


def loss_before(message: "AsyncMessage") -> LeaseExpired | None:
    """Return the failure of an earlier attempt that was lost, if `on_failure` is to be told of it now."""
    if is_notice(message):
        is_loss = BURIED_EXPIRED in message.headers and message.attempt == 1
        return LeaseExpired(message.headers.get(BURIED_ERROR, "")) if is_loss else None
    if message.suspicion:
        return LeaseExpired(
            "the lease of an earlier attempt expired: its worker was killed, cut off or stopped"
        )
    return None


def _without_lease(message: "AsyncMessage") -> "AsyncMessage":
    """Return a copy whose calls answer that the lease is lost: the attempt has been decided."""
    state = AttemptState()
    state.is_lost = True
    return replace(message, token=NO_TOKEN, attempt_state=state)


def _log(handler: Handler, message: "AsyncMessage", reason: str) -> None:
    LOGGER.error(
        "on_failure of %s failed for message %d of %r: %s",
        *(one_line(handler.name), message.id, message.channel, one_line(reason)),
    )
