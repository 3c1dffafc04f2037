"""How an attempt ends, judged from what its handler did; no I/O."""

import traceback
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random

from lonnymq.calls import argument
from lonnymq.calls.codec import Codec, encoded
from lonnymq.errors import InvalidArgument
from lonnymq.worker.handler import Bury, Defer, Handler

HERE = str(Path(__file__).parent)
# Of a traceback that is too long its beginning and its end say most.
MAX_ERROR_CHARACTERS = 10_000


class Interruption(StrEnum):
    """Why a handler was told to stop before it had finished."""

    LOST = "its lease was lost"
    CANCELLED = "its message was cancelled"
    TIMED_OUT = "its time was over"
    STOPPED = "the worker stops"


class Word(StrEnum):
    """What the worker says to the queue at the end of an attempt."""

    COMPLETE = "complete"
    DEFER = "defer"
    BURY = "bury"
    GIVE_BACK = "give_back"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Verdict:
    """The worker's word and what goes with it; `error` is kept with the message."""

    word: Word
    delay_ms: int | None = None
    state: bytes | None = None
    error: str | None = None


COMPLETED = Verdict(Word.COMPLETE)
GIVEN_BACK = Verdict(Word.GIVE_BACK)
NOTHING = Verdict(Word.NOTHING)


class TimedOut(Exception):
    """The handler took longer than its `timeout_s`."""


@dataclass(frozen=True)
class Judge:
    codec: Codec
    random: Random = field(default_factory=Random)

    def verdict(
        self, handler: Handler, attempt: int, error: BaseException | None, why: Interruption | None
    ) -> Verdict:
        """Judge an attempt, counted from 1, that ended with this error, or none, interrupted or not."""
        if why is Interruption.LOST:
            return NOTHING
        if why is Interruption.CANCELLED:
            # The lease holds its channel's place until the worker says that it has stopped.
            return GIVEN_BACK
        if error is None:
            return COMPLETED
        if why is Interruption.STOPPED:
            return GIVEN_BACK
        if why is Interruption.TIMED_OUT:
            late = TimedOut(f"{handler.name} took longer than {handler.timeout_s:g} s")
            error = late.with_traceback(error.__traceback__)
        if isinstance(error, Bury):
            return Verdict(Word.BURY, error=error.reason)
        if handler.max_attempts is not None and attempt >= handler.max_attempts:
            return Verdict(Word.BURY, error=described(error))
        if isinstance(error, Defer):
            return self._deferred(error, handler, attempt)
        return self._retried(error, handler, attempt)

    def _deferred(self, wish: Defer, handler: Handler, attempt: int) -> Verdict:
        try:
            state = None if wish.state is None else encoded("state", wish.state, self.codec)
        except InvalidArgument as error:
            return self._retried(error, handler, attempt)
        return Verdict(Word.DEFER, wish.delay_ms, state, wish.error)

    def _retried(self, error: BaseException, handler: Handler, attempt: int) -> Verdict:
        delay_ms = argument.delay_ms("delay", handler.retry.delay_s(attempt, self.random))
        return Verdict(Word.DEFER, delay_ms, error=described(error))


def described(error: BaseException) -> str:
    """Return the traceback as it is kept with the message: from the handler's own frame on."""
    if isinstance(error, Defer):
        return error.error or str(error)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(HERE):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
    if len(text) > MAX_ERROR_CHARACTERS:
        half = MAX_ERROR_CHARACTERS // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"
    return argument.error_text(text) or ""
