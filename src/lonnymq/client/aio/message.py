"""A leased message, and the calls that end its attempt."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lonnymq.calls import argument
from lonnymq.calls.codec import decode_content
from lonnymq.client.aio.acknowledger import AsyncMessageActions
from lonnymq.client.attempt_state import AttemptState
from lonnymq.model import LeasedMessage, Progress

if TYPE_CHECKING:
    from lonnymq.client.aio.queue import AsyncQueue

MAX_NOTE = 200


@dataclass(frozen=True, kw_only=True)
class AsyncMessage(AsyncMessageActions, LeasedMessage):
    """One attempt at a message: what was leased, and the calls that end the attempt."""

    queue: "AsyncQueue" = field(repr=False, compare=False)
    # Set by the worker that holds the message, if there is one.
    attempt_state: AttemptState | None = field(default=None, repr=False, compare=False)

    @property
    def is_lost(self) -> bool:
        """Whether the worker knows that this lease has ended: stop, because the result will be discarded."""
        return self.attempt_state is not None and self.attempt_state.is_lost

    def progress(self, fraction: float, note: str = "") -> None:
        """Report how far this attempt is, from 0 to 1, and in which step, in at most 200 characters.

        The next heartbeat of its worker takes it along, and `queue.status_of()` shows it. Costs no call.
        """
        reported = Progress(argument.fraction("fraction", fraction), argument.text("note", note, 0, MAX_NOTE))
        state = self.attempt_state
        if state is None:
            # Nobody but the program itself holds this message.
            state = self.__dict__["attempt_state"] = AttemptState()
        state.progress = reported

    # Not a cached_property: before Python 3.12 that takes a lock, for a third of the time of decoding.
    @property
    def payload(self) -> Any:
        """The content, decoded."""
        cache = self.__dict__
        if "decoded_payload" not in cache:
            cache["decoded_payload"] = decode_content(self.content, self.queue.codec, "content", self.id)
        return cache["decoded_payload"]

    @cached_property
    def state(self) -> Any:
        """The state that the previous attempt left for this one, decoded; None if there is none."""
        if self.state_content is None:
            return None
        return decode_content(self.state_content, self.queue.codec, "state", self.id)
