"""One attempt at a message in a worker."""

from typing import TYPE_CHECKING

from lonnymq.client.attempt_state import AttemptState

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.worker.handler import Handler
    from lonnymq.worker.slot import Slot
    from lonnymq.worker.verdict import Interruption

# At this level of suspicion and above, a message runs alone (see sql/tables/message.sql).
SUSPECT = 2


class Attempt:
    """A leased message, from the dequeue to the queue's answer to the acknowledgement."""

    __slots__ = (
        "ended_at",
        "handler",
        "interruption",
        "leased_until",
        "may_be_acknowledged",
        "message",
        "reserved_bytes",
        "sequence",
        "slot",
        "started_at",
        "state",
        "unread_bytes",
        "waiting_since",
    )

    def __init__(self, message: "AsyncMessage", sequence: int, now: float, leased_until: float) -> None:
        self.message = message
        # The order in which this process leased its messages.
        self.sequence = sequence
        # What the handler's own calls report. The message refers to this and not to the attempt: without a
        # reference cycle, a large content is freed at once.
        self.state = AttemptState()
        # By the monotonic clock. Until then the lease is ours, even if the connection breaks.
        self.leased_until = leased_until
        self.waiting_since = now
        # The size of a content that was too large for the reply of the dequeue.
        self.unread_bytes = 0
        # This attempt's part of the memory budget.
        self.reserved_bytes = 0
        # The slot whose handler processes the message now.
        self.slot: Slot | None = None
        self.handler: Handler | None = None
        self.interruption: Interruption | None = None
        self.started_at = 0.0
        self.ended_at = 0.0
        # An acknowledgement was sent and its answer was lost, so it may have taken effect.
        self.may_be_acknowledged = False
        object.__setattr__(message, "attempt_state", self.state)

    @property
    def is_suspect(self) -> bool:
        """Whether the message must run alone, because it was lost together with its process before."""
        return self.message.suspicion >= SUSPECT
