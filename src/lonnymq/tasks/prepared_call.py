"""A call of a task with its arguments and options, which can be enqueued."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, NotRequired, TypedDict, TypeVar

from lonnymq.errors import InvalidArgument
from lonnymq.model import NewMessage
from lonnymq.tasks.enqueued import AsyncEnqueued, Enqueued

if TYPE_CHECKING:
    from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
    from lonnymq.connections.sync.borrowed import BorrowedConnection
    from lonnymq.tasks.returned import ReturnValue
    from lonnymq.tasks.task import Task

Returned = TypeVar("Returned")
# Options of a call that are not parts of its message.
CALL_OPTIONS = ("connection", "raise_if_dropped")


class Step(TypedDict):
    """A later step of a chain in the payload of its message."""

    task: str
    arguments: dict[str, Any]
    # The argument that takes the result of the step before.
    takes: NotRequired[str]
    # How long it waits after that.
    delay_ms: NotRequired[int]
    # Whether its task wants a notice if this step is buried.
    on_buried: NotRequired[bool]


class GroupPart(TypedDict):
    """The part of a callback's payload that is about its group."""

    # The argument that takes the results of the members, as a list in their order.
    takes: NotRequired[str]


class Payload(TypedDict):
    """The payload of a task's message: the call, and the steps that follow it."""

    task: str
    arguments: dict[str, Any]
    then: NotRequired[list[Step]]
    group: NotRequired[GroupPart]


@dataclass(frozen=True, kw_only=True)
class EnqueueOptions:
    """The options of `Queue.enqueue()`."""

    at: datetime | None = None
    delay: timedelta | float | None = None
    priority: int | None = None
    key: str | None = None
    max_attempts: int | None = None
    headers: Mapping[str, str] | None = None
    keep_result: timedelta | float | None = None
    raise_if_dropped: bool = False
    connection: "BorrowedConnection | AsyncBorrowedConnection | None" = None


@dataclass(frozen=True)
class PreparedCall(Generic[Returned]):
    """Enqueues one message: a call of `task`, whose result is that of `returned`."""

    task: "Task[..., Any]"
    payload: Payload
    options: EnqueueOptions
    returned: "ReturnValue"

    def enqueue(self, channel: str) -> Enqueued[Returned]:
        queue = self.task.app.clients.blocking_queue(self.task.function_name)
        created = self._send(queue, channel)
        return Enqueued(created.outcome, created.id, queue, self.returned.from_json)

    def enqueue_async(self, channel: str) -> Coroutine[Any, Any, AsyncEnqueued[Returned]]:
        # Not an "async def": mistakes raise here, not only when the result is awaited.
        queue = self.task.app.clients.async_queue(self.task.function_name)

        async def enqueue() -> AsyncEnqueued[Returned]:
            created = await self._send(queue, channel)
            return AsyncEnqueued(created.outcome, created.id, queue, self.returned.from_json)

        return enqueue()

    def message(self, channel: str) -> NewMessage:
        for name in CALL_OPTIONS:
            if getattr(self.options, name):
                raise InvalidArgument(
                    f"{self.task.name}: {name} is no option of a message: pass it to the call that enqueues"
                    " the message"
                )
        return self._message(channel)

    def _message(self, channel: str) -> NewMessage:
        given = self._options_for(channel)
        for name in CALL_OPTIONS:
            del given[name]
        return NewMessage(channel=channel, payload=self.payload, **given)

    def _send(self, queue: Any, channel: str) -> Any:
        """Return the outcome, which is awaited if the queue is an AsyncQueue."""
        return queue.enqueue(channel, self.payload, **self._options_for(channel))

    def _options_for(self, channel: str) -> dict[str, Any]:
        return {**vars(self.options), "headers": self.task.headers(channel, self.options.headers)}
