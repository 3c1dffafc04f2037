"""One leased message in a worker, and what the worker knows of it."""

from typing import TYPE_CHECKING

from lonnymq.client.attempt_state import AttemptState

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.worker.handler import Handler
    from lonnymq.worker.slot import Slot
    from lonnymq.worker.verdict import Interruption

# From this level of suspicion on, a message runs alone (see sql/tables/message.sql).
SUSPECT = 2


class Attempt:
    """From the dequeue to the queue's last answer."""

    __slots__ = (
        "began_at",
        "ended_at",
        "handler",
        "interruption",
        "leased_until",
        "may_be_acknowledged",
        "message",
        "reserved_bytes",
        "slot",
        "state",
        "unread_bytes",
        "waiting_since",
    )

    def __init__(self, message: "AsyncMessage", now: float, leased_until: float) -> None:
        self.message = message
        # What the handler's own calls tell of it. The message refers to this, not to the attempt: without a
        # cycle, a large content is freed at once.
        self.state = AttemptState()
        # By the monotonic clock: until then the lease is ours, whatever becomes of the connection.
        self.leased_until = leased_until
        self.waiting_since = now
        # The size of a content that was too large for the reply of the dequeue, and its part of the budget.
        self.unread_bytes = 0
        self.reserved_bytes = 0
        # The slot that works it, if one does.
        self.slot: Slot | None = None
        self.handler: Handler | None = None
        self.interruption: Interruption | None = None
        self.began_at = 0.0
        self.ended_at = 0.0
        # An acknowledgement was sent and its answer was lost: it may have taken effect.
        self.may_be_acknowledged = False
        object.__setattr__(message, "attempt_state", self.state)

    @property
    def is_suspect(self) -> bool:
        """Whether its process died with it before, so that it must run alone."""
        return self.message.suspicion >= SUSPECT
