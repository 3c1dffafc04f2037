"""Inspects a queue: its messages, its channels, and its figures."""

from datetime import timedelta
from typing import Any

from lonnymq.calls import argument
from lonnymq.calls import channel as channel_calls
from lonnymq.calls import group as group_calls
from lonnymq.calls import peek as peek_calls
from lonnymq.calls import queue as queue_calls
from lonnymq.calls import result as result_calls
from lonnymq.calls import worker as worker_calls
from lonnymq.calls.codec import Codec
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.aio.result_waiter import AsyncResultWaiter
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.connections.aio.execution import transaction
from lonnymq.model import (
    ChannelStatus,
    ExactCounts,
    Lease,
    LiveMessage,
    MessageReport,
    MessageStatus,
    Page,
    PageCursor,
    Problem,
    QueueActivity,
    QueuePulse,
    QueueStatus,
    RecordedAttempts,
    WorkerStatus,
)


class AsyncInspector:
    """The part of a queue that reads. It leases nothing, and only `check(repair=True)` changes anything."""

    caller: AsyncCaller
    codec: Codec
    _result_waiter: AsyncResultWaiter

    async def peek(
        self,
        channel: str | None = None,
        *,
        limit: int = 10,
        is_leased: bool = False,
        preview_bytes: int | None = 1000,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[LiveMessage]:
        """Return a channel's next messages, or those of all channels by id, without leasing them.

        With `is_leased`, return the leased ones. `preview_bytes=None` reads whole contents; 0 reads neither
        contents, states nor headers, which a reader may not.
        """
        call = peek_calls.peek(
            None if channel is None else argument.channel(channel),
            argument.whole("limit", limit, 1, 10_000),
            is_leased,
            argument.optional_whole("preview_bytes", preview_bytes, 0, argument.MAX_INTEGER),
        )
        return await self.caller.perform(call, connection)

    async def messages(
        self,
        channel: str | None = None,
        *,
        prefix: str | None = None,
        status: MessageStatus | str | None = None,
        before: PageCursor | None = None,
        limit: int = 100,
        preview_bytes: int | None = 1000,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Page[LiveMessage]:
        """Return a page of live messages, newest first; for the next one, pass its `next` as `before`.

        `prefix`, without `channel`, is how the names of the channels begin.

        `preview_bytes=None` reads whole contents; 0 reads neither contents, states nor headers, which a
        reader may not.
        """
        call = peek_calls.page(
            None if channel is None else argument.channel(channel),
            None if status is None else argument.enum_value("status", status, MessageStatus),
            argument.cursor("before", before),
            argument.whole("limit", limit, 1, 10_000),
            argument.optional_whole("preview_bytes", preview_bytes, 0, argument.MAX_INTEGER),
            argument.optional_text("prefix", prefix, 0, 255),
        )
        return await self.caller.perform(call, connection)

    async def show(
        self,
        message_id: int,
        *,
        preview_bytes: int | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> LiveMessage | None:
        """Return one message; None if it is not live: finished, a dead letter, or never created.

        `preview_bytes=0` reads neither content, state nor headers, which a reader may not.
        """
        call = peek_calls.show(
            argument.identifier("message_id", message_id),
            argument.optional_whole("preview_bytes", preview_bytes, 0, argument.MAX_INTEGER),
        )
        return await self.caller.perform(call, connection)

    async def attempts(
        self,
        message_id: int,
        *,
        rows: int = 10_000,
        limit: int = 100,
        connection: AsyncBorrowedConnection | None = None,
    ) -> RecordedAttempts:
        """Return a message's attempts, the latest first, as far as they are among history's newest `rows`."""
        call = peek_calls.attempts(
            argument.identifier("message_id", message_id),
            argument.whole("rows", rows, 1, 10_000),
            argument.whole("limit", limit, 1, 10_000),
        )
        return await self.caller.perform(call, connection)

    async def status_of(
        self,
        message_id: int,
        *,
        has_result: bool = True,
        connection: AsyncBorrowedConnection | None = None,
    ) -> MessageReport:
        """Return what has become of a message, whether it is live or has ended.

        `has_result=False` does not read the result, which a reader may not.
        """
        ids = [argument.identifier("message_id", message_id)]
        call = result_calls.status_of(ids, has_results=has_result)
        return (await self.caller.perform(call, connection))[0]

    async def group_results(
        self, callback: Lease, *, connection: AsyncBorrowedConnection | None = None
    ) -> list[MessageReport]:
        """Return what has become of the members of a group, in their order, to the holder of its callback.

        Returns nothing if the message is not the callback of a group, or its results have expired. Raises
        InvalidArgument if they are larger than 16 MiB together.
        """
        argument.lease("callback", callback)
        call = group_calls.results(
            argument.identifier("id", callback.id), argument.identifier("token", callback.token)
        )
        return await self.caller.perform(call, connection)

    async def result(self, message_id: int, *, wait: timedelta | float | None = None) -> Any:
        """Return the result of a message that was enqueued with `keep_result`; wait for it up to `wait`.

        Raises NotFinished, MessageBuried, MessageCancelled or ResultUnknown if there is none.
        """
        id_ = argument.identifier("message_id", message_id)
        wait_s = 0.0 if wait is None else argument.seconds("wait", wait)
        return result_calls.require_result(await self._result_waiter.wait(id_, wait_s), self.codec)

    async def channels(
        self,
        *,
        prefix: str = "",
        after: str = "",
        limit: int = 100,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[ChannelStatus]:
        """Return channels by the bytes of their names; for the next page, pass the last name as `after`.

        With `prefix`, only channels whose names begin with it. While no worker runs, some new channels may
        be missing. The cost does not depend on the size of the queue.
        """
        call = channel_calls.page(
            argument.text("prefix", prefix, 0, 255),
            argument.text("after", after),
            argument.whole("limit", limit, 1, 10_000),
        )
        return await self.caller.perform(call, connection)

    async def busiest(
        self, *, limit: int = 20, connection: AsyncBorrowedConnection | None = None
    ) -> list[ChannelStatus]:
        """Return the channels with the most messages, waiting and leased.

        In a large queue they are found in a sample: it may miss a channel with less than a 64th of all
        messages. The figures are exact.
        """
        call = channel_calls.busiest(argument.whole("limit", limit, 1, 10_000))
        return await self.caller.perform(call, connection)

    async def overdue(
        self, *, limit: int = 20, connection: AsyncBorrowedConnection | None = None
    ) -> list[ChannelStatus]:
        """Return the channels that have waited longest for a worker; `ready_at` says since when."""
        call = channel_calls.overdue(argument.whole("limit", limit, 1, 10_000))
        return await self.caller.perform(call, connection)

    async def workers(
        self, *, after: str = "", limit: int = 1000, connection: AsyncBorrowedConnection | None = None
    ) -> list[WorkerStatus]:
        """Return the processes of workers by name; for the next page, pass the last one's name as `after`.

        A process reports every five seconds; `drain_workers()` asks it to stop.
        """
        call = worker_calls.statuses(argument.text("after", after), argument.whole("limit", limit, 1, 10_000))
        return await self.caller.perform(call, connection)

    async def activity(self, *, connection: AsyncBorrowedConnection | None = None) -> QueueActivity:
        """Return counters that only grow; the difference of two readings gives a rate."""
        return await self.caller.perform(queue_calls.activity(), connection)

    async def pulse(
        self, *, channels: int = 100, connection: AsyncBorrowedConnection | None = None
    ) -> QueuePulse:
        """Return the figures to watch a queue by, at a cost that does not depend on its size.

        `channels` is how many channels that are due to look at.
        """
        call = queue_calls.pulse(argument.whole("channels", channels, 1, 10_000))
        return await self.caller.perform(call, connection)

    async def status(self, *, connection: AsyncBorrowedConnection | None = None) -> QueueStatus:
        """Return exact counts, which takes longer the more channels and messages there are; see `pulse()`."""
        return await self.caller.perform(queue_calls.status(), connection)

    async def count(self, *, may_count: bool = True, timeout_s: float = 10.0) -> ExactCounts | None:
        """Return the last exact counts, and take new ones if that is due; None if there are none yet.

        A count is due once 40 times as long has passed as the last one took, whoever took it. Call this in
        the background; without `may_count` it returns at once.
        """
        timeout_ms = round(argument.seconds_between("timeout_s", timeout_s, 0.001, 3600) * 1000)
        async with self.caller.source.connection() as own, transaction(own):
            await self.caller.perform(queue_calls.limit_time(timeout_ms), own)
            return await self.caller.perform(queue_calls.count(may_count), own)

    async def check(
        self, *, repair: bool = False, connection: AsyncBorrowedConnection | None = None
    ) -> list[Problem]:
        """Check the queue's invariants; return the broken ones, repaired on request."""
        return await self.caller.perform(queue_calls.check(repair), connection)
