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

    # Defaults in the class, because most attempts never change most of them.
    # The size of a content that was too large for the reply of the dequeue.
    unread_bytes = 0
    # This attempt's part of the memory budget.
    reserved_bytes = 0
    # The slot whose handler processes the message now.
    slot: "Slot | None" = None
    handler: "Handler | None" = None
    interruption: "Interruption | None" = None
    started_at = 0.0
    ended_at = 0.0
    # An acknowledgement was sent and its answer was lost, so it may have taken effect.
    may_be_acknowledged = False

    def __init__(self, message: "AsyncMessage", sequence: int, now: float, leased_until: float) -> None:
        self.message = message
        # The order in which this process leased its messages.
        self.sequence = sequence
        # What the handler's own calls report. The message refers to this and not to the attempt: without a
        # reference cycle, a large content is freed at once.
        self.state = message.__dict__["attempt_state"] = AttemptState()
        # By the monotonic clock. Until then the lease is ours, even if the connection breaks.
        self.leased_until = leased_until
        self.waiting_since = now

    @property
    def is_suspect(self) -> bool:
        """Whether the message must run alone, because it was lost together with its process before."""
        return self.message.suspicion >= SUSPECT
