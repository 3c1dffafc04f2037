"""Enqueues: one message, many, or millions."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from lonnymq.calls import argument
from lonnymq.calls import group as group_calls
from lonnymq.calls import message as calls
from lonnymq.calls import stage as stage_calls
from lonnymq.calls.codec import Codec
from lonnymq.calls.draft import NEW_MESSAGES, draft, drafts
from lonnymq.calls.result import MAX_KEEP
from lonnymq.client.aio import bulk
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.backpressure import raise_for_dropped
from lonnymq.client.enqueueing import Enqueueing, EnqueueMiddleware
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.errors import invalid, invalid_kind
from lonnymq.model import Created, CreatedGroup, NewMessage, Published

MAX_CREATE = 100_000


class AsyncEnqueuer:
    """The part of a queue that puts messages into channels."""

    caller: AsyncCaller
    codec: Codec
    # The outermost first.
    _all_middleware: tuple[EnqueueMiddleware, ...]

    async def enqueue(
        self,
        channel: str,
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
        """Put a message into a channel: now, `at` a time, after a `delay` (or seconds), or by `priority`.

        While a message with this `key` is live in the channel, the outcome is `duplicate`, with its id.
        `headers` are texts that travel with the payload, such as a trace context.
        `keep_result` is how long its result is kept after it has ended, at most 7 days.
        A channel at its `max_size` drops the message: the outcome is `dropped`, or ChannelFull is raised.
        If the connection is lost, the call is repeated only for a message with a key: others might be
        created twice.
        """
        message = NewMessage(
            channel=channel,
            payload=payload,
            at=at,
            delay=delay,
            priority=priority,
            key=key,
            max_attempts=max_attempts,
            headers=headers,
            keep_result=keep_result,
        )
        with self._around_enqueue([message]) as enqueueing:
            (message,) = enqueueing.same_number(1)
            created = await self.caller.perform(calls.create(draft(message, self.codec)), connection)
            enqueueing.result = [created]
        if raise_if_dropped:
            raise_for_dropped([message.channel], [created])
        return created

    async def enqueue_many(
        self,
        messages: Iterable[NewMessage],
        *,
        raise_if_dropped: bool = False,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[Created]:
        """Put many messages into their channels, all or none, in the order given; see also `copy_in`.

        Only messages that full channels drop are left out. If ChannelFull is raised, it has all outcomes.
        """
        given = argument.items("messages", messages, NEW_MESSAGES, MAX_CREATE, "; use copy_in()")
        if not given:
            return []
        with self._around_enqueue(given) as enqueueing:
            made = list(drafts(enqueueing.same_number(len(given)), self.codec))
            created = await self.caller.perform(calls.create_many(made), connection)
            enqueueing.result = created
        if raise_if_dropped:
            raise_for_dropped([message.channel for message in made], created)
        return created

    async def enqueue_group(
        self,
        members: Iterable[NewMessage],
        callback: NewMessage,
        *,
        deadline: timedelta | float = MAX_KEEP,
        raise_if_dropped: bool = False,
        connection: AsyncBorrowedConnection | None = None,
    ) -> CreatedGroup:
        """Put 1 to 1,000 messages into their channels, and one more that is due when they all have ended.

        Returns the outcome and the id of that one, the callback, and the ids of the members. The callback
        is due at the `deadline` at the latest, after 7 days if none is given. `group_results()` tells its
        handler what has become of the members. If one of the messages is dropped, none is created.
        """
        found = argument.items("members", members, NEW_MESSAGES, group_calls.MAX_MEMBERS)
        given = [*found, callback]
        with self._around_enqueue(given) as enqueueing:
            *made, last = drafts(enqueueing.same_number(len(given)), self.codec)
            created = await self.caller.perform(group_calls.create(made, last, deadline), connection)
            enqueueing.result = [created]
        if raise_if_dropped:
            raise_for_dropped([last.channel], [created])
        return created

    async def copy_in(
        self,
        messages: Iterable[NewMessage],
        *,
        publication: str | None = None,
        on_progress: Callable[[int], object] | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Published:
        """Put millions of messages into their channels, all or none; `max_size` does not apply.

        Loads with the same `publication` name are published once, however often they are sent.
        """
        if not isinstance(messages, Iterable):
            raise invalid_kind("messages", messages, NEW_MESSAGES)
        if on_progress is not None and not callable(on_progress):
            raise invalid("on_progress", on_progress, "a function that takes the number of messages so far")
        with self._around_enqueue(messages) as enqueueing:
            published = await bulk.copy_in(
                self.caller, self.codec, enqueueing.messages, publication, on_progress, connection
            )
            enqueueing.result = published
        return published

    def _around_enqueue(self, messages: Iterable[NewMessage]) -> Enqueueing:
        return Enqueueing(self._all_middleware, messages)

    async def stage_prune(self, *, older_than: timedelta | float = timedelta(days=1)) -> int:
        """Delete messages that bulk loads of any role staged and never published; return how many.

        `older_than` must be at least an hour, so that loads in progress keep their messages.
        """
        return await self.caller.perform(stage_calls.prune(older_than))
