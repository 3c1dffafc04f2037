"""A leased message and what can be done with it."""

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lonnymq.calls.codec import decoded
from lonnymq.client.attempt_state import AttemptState
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.model import (
    BuryOutcome,
    CompleteOutcome,
    DeferOutcome,
    GiveBackOutcome,
    HeartbeatOutcome,
    LeasedMessage,
)

if TYPE_CHECKING:
    from lonnymq.client.aio.queue import AsyncQueue


@dataclass(frozen=True, kw_only=True)
class AsyncMessage(LeasedMessage):
    """One attempt. With `connection=`, an acknowledgement joins the caller's transaction."""

    queue: "AsyncQueue" = field(repr=False, compare=False)
    # Of the worker that holds it, if one does.
    attempt_state: AttemptState | None = field(default=None, repr=False, compare=False)

    @property
    def is_lost(self) -> bool:
        """Whether the worker knows that this lease has ended: stop, nothing of it will count."""
        return self.attempt_state is not None and self.attempt_state.is_lost

    @cached_property
    def payload(self) -> Any:
        """The content, decoded."""
        return decoded(self.content, self.queue.codec, f"the content of message {self.id}")

    @cached_property
    def state(self) -> Any:
        """What the attempt before left for this one, decoded; None if nothing."""
        if self.state_content is None:
            return None
        return decoded(self.state_content, self.queue.codec, f"the state of message {self.id}")

    async def complete(self, *, connection: AsyncBorrowedConnection | None = None) -> CompleteOutcome:
        """The work is done: the message is gone."""
        return (await self.queue.complete([self], connection=connection))[0]

    async def defer(
        self,
        *,
        delay: timedelta | float | None = None,
        state: Any = None,
        error: str | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> DeferOutcome:
        """Try again after `delay`, with `state` for the next attempt; buried if this was the last one."""
        outcomes = await self.queue.defer(
            [self], delay=delay, state=state, error=error, connection=connection
        )
        return outcomes[0]

    async def bury(
        self, *, error: str | None = None, connection: AsyncBorrowedConnection | None = None
    ) -> BuryOutcome:
        """Never try again: it becomes a dead letter."""
        return (await self.queue.bury([self], error=error, connection=connection))[0]

    async def give_back(self, *, connection: AsyncBorrowedConnection | None = None) -> GiveBackOutcome:
        """Return it unworked, without spending an attempt."""
        return (await self.queue.give_back([self], connection=connection))[0]

    async def heartbeat(
        self, *, lease_s: float = 30.0, connection: AsyncBorrowedConnection | None = None
    ) -> HeartbeatOutcome:
        """Keep it for another `lease_s` seconds from now."""
        return (await self.queue.heartbeat([self], lease_s=lease_s, connection=connection))[0]
