"""Decides how an attempt ends, from what its handler did; no I/O."""

import traceback
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any

from lonnymq.calls import argument
from lonnymq.calls.codec import Codec, encode_payload
from lonnymq.calls.result import ONLY_OUTCOME, is_wanted
from lonnymq.client.attempt_state import AttemptState
from lonnymq.errors import InvalidArgument
from lonnymq.model.acknowledge import ADVANCE, BURY, COMPLETE, DEFER, GIVE_BACK, Action
from lonnymq.worker.handler import Bury, Defer, Handler
from lonnymq.worker.retry import Retry, leaves

OWN_DIRECTORIES = (str(Path(__file__).parent), str(Path(__file__).parents[1] / "tasks"))


class Interruption(StrEnum):
    """Why a handler was told to stop before it had finished."""

    LOST = "its lease was lost"
    CANCELLED = "its message was cancelled"
    TIMED_OUT = "it timed out"
    STOPPED = "the worker is stopping"


@dataclass(frozen=True)
class Verdict:
    """The action to send to the queue, if any, with its details (see model/acknowledge.py)."""

    action: Action[Any] | None
    delay_ms: int | None = None
    state: bytes | None = None
    error: str | None = None
    result: bytes | None = None
    content: bytes | None = None
    headers: str | None = None
    # Of a message that must not be processed: the handler whose `on_failure` is told of the loss before it.
    handler: Handler | None = field(default=None, compare=False)
    # The bytes that it adds to a call, and those of them that are kept with the message.
    size: int = field(init=False, default=0)
    kept: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        kept = len(self.state or b"") + len(self.result or b"") + len(self.content or b"")
        object.__setattr__(self, "kept", kept)
        object.__setattr__(self, "size", kept + len(self.error or "") + len(self.headers or ""))

    @property
    def is_success(self) -> bool:
        """Whether the handler has done its work."""
        return self.action in SUCCESSES

    def with_state(self, state: bytes | None) -> "Verdict":
        """Return it with a state for the next attempt, if there is to be one and it has no other state."""
        if state is None or self.action is not DEFER or self.state is not None:
            return self
        return Verdict(DEFER, self.delay_ms, state, self.error)


SUCCESSES = (COMPLETE, ADVANCE)
COMPLETED = Verdict(COMPLETE)
# The producer asked for the result, but the handler has none: the queue keeps that it has completed.
COMPLETED_WITHOUT_RESULT = Verdict(COMPLETE, result=ONLY_OUTCOME)
GIVEN_BACK = Verdict(GIVE_BACK)
NO_ACTION = Verdict(None)


class TimedOut(Exception):
    """The handler took longer than its `timeout`."""


class LeaseExpired(Exception):
    """An attempt was not ended by its worker: that was killed, cut off, or stopped for too long."""


def success(message: object, state: AttemptState) -> Verdict:
    """Return the verdict on an attempt that succeeded."""
    if (step := state.next_step) is not None:
        return Verdict(ADVANCE, step.delay_ms, content=step.content, headers=step.headers)
    if not is_wanted(message):
        return COMPLETED
    return COMPLETED_WITHOUT_RESULT if state.result is None else Verdict(COMPLETE, result=state.result)


@dataclass(frozen=True)
class Judge:
    codec: Codec
    random: Random = field(default_factory=Random)

    def verdict(
        self, handler: Handler, attempt: int, error: BaseException | None, why: Interruption | None
    ) -> Verdict:
        """Return the verdict on an attempt, counted from 1, by its error and its interruption, if any."""
        try:
            return self._judge(handler, attempt, error, why)
        except Exception as failure:  # noqa: BLE001
            # From a user's own Retry, codec or Defer. No message may break the worker.
            return self._retry_or_bury(format_traceback(failure), handler, attempt, Retry())

    def _judge(
        self, handler: Handler, attempt: int, error: BaseException | None, why: Interruption | None
    ) -> Verdict:
        if why is Interruption.LOST:
            return NO_ACTION
        if why is Interruption.CANCELLED:
            # The lease occupies a place in its channel until the worker says that the handler has stopped.
            return GIVEN_BACK
        if error is None:
            return COMPLETED
        if why is Interruption.STOPPED:
            return GIVEN_BACK
        if why is Interruption.TIMED_OUT:
            error = _timed_out(handler, error)
        error = request_in(error)
        if isinstance(error, Bury):
            return Verdict(BURY, error=error.reason)
        if isinstance(error, Defer) and not _is_last(handler, attempt):
            return self._defer(error, handler, attempt)
        text = format_traceback(error)
        is_final = any(isinstance(one, Bury) for one in leaves(error))
        if is_final or (not isinstance(error, Defer) and not handler.retry.allows(error)):
            return Verdict(BURY, error=text)
        return self._retry_or_bury(text, handler, attempt, handler.retry, error)

    def _defer(self, request: Defer, handler: Handler, attempt: int) -> Verdict:
        try:
            state = None if request.state is None else encode_payload("state", request.state, self.codec)
        except InvalidArgument as error:
            return self._retry_or_bury(format_traceback(error), handler, attempt, handler.retry)
        return Verdict(DEFER, request.delay_ms, state, argument.error_text(request.error))

    def _retry_or_bury(
        self, text: str, handler: Handler, attempt: int, retry: Retry, error: BaseException | None = None
    ) -> Verdict:
        if _is_last(handler, attempt):
            return Verdict(BURY, error=text)
        delay_s = retry.fixed_delay_s(error, self.random)
        if delay_s is None:
            delay_s = retry.delay_s(attempt, self.random)
        return Verdict(DEFER, argument.delay_ms("delay", delay_s), error=text)


def failure(handler: Handler, error: BaseException | None, why: Interruption | None) -> BaseException | None:
    """Return the exception that an attempt failed with, for `on_failure`; None if it did not fail."""
    if error is not None and why is Interruption.TIMED_OUT:
        return _timed_out(handler, error)
    if why is not None or error is None:
        return None
    raised = request_in(error)
    return None if isinstance(raised, Defer) else raised


def request_in(error: BaseException) -> BaseException:
    """Return the Defer or Bury that a group consists of, as an asyncio.TaskGroup raises it; or the error."""
    found = leaves(error)
    return found[0] if len(found) == 1 and isinstance(found[0], Defer | Bury) else error


def _timed_out(handler: Handler, error: BaseException) -> TimedOut:
    timed_out = TimedOut(f"{handler.name} took longer than {handler.timeout_s:g} s")
    return timed_out.with_traceback(error.__traceback__)


def _is_last(handler: Handler, attempt: int) -> bool:
    return handler.max_attempts is not None and attempt >= handler.max_attempts


def format_traceback(error: BaseException) -> str:
    """Return the traceback that is kept with the message, without the worker's own frames."""
    if isinstance(error, Defer):
        return argument.error_text(error.error or error) or ""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OWN_DIRECTORIES):
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
    except Exception as failure:  # noqa: BLE001 - from the error's own __str__ or attributes
        text = f"{type(error).__name__}, which cannot be shown: {type(failure).__name__}"
    return argument.error_text(text) or ""
