"""A tenant's channel: its policy, its status, and why it waits."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack

from lonnymq.calls import argument
from lonnymq.calls import channel as calls
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.errors import Busy
from lonnymq.model import (
    ChannelDeleteOutcome,
    ChannelPolicy,
    ChannelSetOutcome,
    ChannelStatus,
    Created,
    Explanation,
    PolicyChanges,
)

if TYPE_CHECKING:
    from lonnymq.client.aio.queue import AsyncQueue


class AsyncChannel:
    """A channel of a queue, by name. Making it takes no round trip, and the channel need not exist."""

    def __init__(self, queue: "AsyncQueue", name: str) -> None:
        self.queue = queue
        self.name = argument.channel(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self.queue!r}>"

    async def set(
        self, *, connection: AsyncBorrowedConnection | None = None, **changes: Unpack[PolicyChanges]
    ) -> None:
        """Change these fields of the channel's policy (see `ChannelPolicy`), and keep the others.

        None removes the channel's own value, so that the queue's default policy applies; `"none"` lifts a
        limit whatever that says. Takes effect on the next dequeue.
        """
        self._require_set(await self.queue.caller.perform_one(calls.set(self.name, changes), connection))

    async def set_policy(
        self, policy: ChannelPolicy, *, connection: AsyncBorrowedConnection | None = None
    ) -> None:
        """Replace the channel's policy; what it leaves out follows the queue's default policy."""
        call = calls.set(self.name, calls.changes(policy))
        self._require_set(await self.queue.caller.perform_one(call, connection))

    async def pause(self, *, connection: AsyncBorrowedConnection | None = None) -> None:
        """Release no more messages until `resume()`; leased ones are still processed."""
        self._require_set(await self.queue.caller.perform_one(calls.pause(self.name), connection))

    async def resume(self, *, connection: AsyncBorrowedConnection | None = None) -> None:
        """End a pause."""
        self._require_set(await self.queue.caller.perform_one(calls.resume(self.name), connection))

    async def delete(self, *, connection: AsyncBorrowedConnection | None = None) -> ChannelDeleteOutcome:
        """Delete the channel and its policy, if it has no messages."""
        return await self.queue.caller.perform_one(calls.delete(self.name), connection)

    async def explain(self, *, connection: AsyncBorrowedConnection | None = None) -> Explanation:
        """Say why the channel's next message is not released."""
        return await self.queue.caller.perform(calls.explain(self.name), connection)

    async def status(self, *, connection: AsyncBorrowedConnection | None = None) -> ChannelStatus | None:
        """Return the policy and counts; None if the channel was never used or set."""
        return await self.queue.caller.perform(calls.status(self.name), connection)

    async def enqueue(
        self,
        payload: Any,
        *,
        at: datetime | None = None,
        delay: timedelta | float | None = None,
        priority: int | None = None,
        key: str | None = None,
        max_attempts: int | None = None,
        headers: Mapping[str, str] | None = None,
        keep_result: timedelta | float | None = None,
        raise_if_dropped: bool = False,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Created:
        """Enqueue a message into this channel; see `AsyncQueue.enqueue`."""
        return await self.queue.enqueue(
            self.name,
            payload,
            at=at,
            delay=delay,
            priority=priority,
            key=key,
            max_attempts=max_attempts,
            headers=headers,
            keep_result=keep_result,
            raise_if_dropped=raise_if_dropped,
            connection=connection,
        )

    def _require_set(self, outcome: ChannelSetOutcome) -> None:
        if outcome is ChannelSetOutcome.BUSY:
            raise Busy(f"another transaction is changing channel {self.name!r}: try again")
