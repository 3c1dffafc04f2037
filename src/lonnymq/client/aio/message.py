"""A leased message, and the calls that end its attempt."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lonnymq.calls.codec import decode_content
from lonnymq.client.aio.acknowledger import AsyncMessageActions
from lonnymq.client.attempt_state import AttemptState
from lonnymq.model import LeasedMessage

if TYPE_CHECKING:
    from lonnymq.client.aio.queue import AsyncQueue


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
