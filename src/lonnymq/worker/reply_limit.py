"""How many messages to ask for in one call, so that its reply has room for their contents."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.model import Dequeued

# The most messages that one call returns.
MAX_MESSAGES = 500
# A reply with about this many bytes of contents is full; another call then reads those that it left out.
REPLY_BYTES = 32_000
# That other call costs less than asking for fewer messages than this at a time.
MIN_MESSAGES = 150
# Only the first messages of a reply are measured.
MEASURED_MESSAGES = 50


class ReplyLimit:
    """Expects the next contents to be about as large as the last ones."""

    def __init__(self) -> None:
        self.messages = MAX_MESSAGES

    def adapt(self, reply: "Dequeued[AsyncMessage]") -> None:
        """Set the limit by the contents of a reply."""
        measured = reply.leases[:MEASURED_MESSAGES]
        size = sum(reply.unread.get(one.id) or _size(one) for one in measured)
        if size:
            fitting = REPLY_BYTES * len(measured) // size
            self.messages = min(max(fitting, MIN_MESSAGES), MAX_MESSAGES)


def _size(message: "AsyncMessage") -> int:
    texts = len(message.key or "") + len(message.headers_json or "")
    return len(message.content) + len(message.state_content or b"") + texts
