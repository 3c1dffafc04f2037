"""A function whose calls are messages."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypedDict, TypeVar, cast

from lonnymq.errors import DecodeError, InvalidArgument
from lonnymq.model import NewMessage
from lonnymq.tasks.arguments import Arguments
from lonnymq.texts import shown
from lonnymq.worker.handler import Bury, Handler
from lonnymq.worker.retry import Retry
from lonnymq.worker.thread_pool import awaitable_error

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.client.sync import Message
    from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
    from lonnymq.connections.sync.borrowed import BorrowedConnection
    from lonnymq.tasks.app import App

P = ParamSpec("P")
Returned = TypeVar("Returned")
# What enqueue() answers: Created on a Queue, an awaitable of it on an AsyncQueue.
Answer = TypeVar("Answer")


class Payload(TypedDict):
    """What a task's message holds."""

    task: str
    arguments: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class EnqueueOptions:
    """When, how urgently, how often; and in whose transaction."""

    at: datetime | None = None
    delay: timedelta | float | None = None
    priority: int | None = None
    key: str | None = None
    max_attempts: int | None = None
    raise_if_dropped: bool = False
    connection: "BorrowedConnection | AsyncBorrowedConnection | None" = None


class Default(Enum):
    """Stands for an argument that was not given."""

    DEFAULT = "default"


# Of a task that says nothing: with the pauses of Retry(), about half a day.
DEFAULT_MAX_ATTEMPTS = 25
# The arguments of a larger content are read in a thread: on the loop, they would hold up the heartbeats of
# all other messages. Decoding it in a thread would not help: Python's JSON keeps the interpreter to itself.
MAX_BYTES_ON_LOOP = 100_000
OPTIONS = frozenset(field.name for field in fields(EnqueueOptions))


class Task(Generic[P, Returned, Answer]):
    """Call it, and it runs here and now; enqueue it, and a worker runs it."""

    def __init__(
        self,
        app: "App[Answer]",
        function: Callable[P, Returned],
        *,
        name: str,
        max_attempts: "int | Default | None",
        timeout: timedelta | float | None,
        retry: Retry,
    ) -> None:
        self.app = app
        self.queue = app.queue
        self.function = function
        self.name = name
        # What goes with each message. The default does not, so that a channel's limit comes before it.
        self.max_attempts = None if isinstance(max_attempts, Default) else max_attempts
        self.arguments = Arguments(function, self.name)
        # The limit of a message or its channel counts, so the task's is only for messages without one.
        self._handler_of_limited = Handler(call=self._call(), name=name, timeout=timeout, retry=retry)
        limit = DEFAULT_MAX_ATTEMPTS if isinstance(max_attempts, Default) else max_attempts
        self._handler = replace(self._handler_of_limited, max_attempts=limit)
        functools.update_wrapper(self, function)

    @property
    def not_a_handler(self) -> str:
        """Why a worker must not call this, or a method of it, with a message."""
        return f"{self.name!r} is a task, which takes its own arguments; pass its app instead"

    def __call__(self, *arguments: P.args, **options: P.kwargs) -> Returned:
        return self.function(*arguments, **options)

    def __repr__(self) -> str:
        return f"<Task {self.name!r}>"

    def enqueue(self, channel: str, /, *arguments: P.args, **options: P.kwargs) -> Answer:
        """Have a worker call the function with these arguments."""
        return self.options().enqueue(channel, *arguments, **options)

    def message(self, channel: str, /, *arguments: P.args, **options: P.kwargs) -> NewMessage:
        """Return the message for `queue.enqueue_many()` or `copy_in()`."""
        return self.options().message(channel, *arguments, **options)

    def options(
        self,
        *,
        at: datetime | None = None,
        delay: timedelta | float | None = None,
        priority: int | None = None,
        key: str | None = None,
        max_attempts: int | None = None,
        raise_if_dropped: bool = False,
        connection: "BorrowedConnection | AsyncBorrowedConnection | None" = None,
    ) -> "PreparedTask[P, Returned, Answer]":
        """Say when and how, then `.enqueue(...)`: `resize.options(delay=60).enqueue("acme", 7)`."""
        return PreparedTask(
            self,
            EnqueueOptions(
                at=at,
                delay=delay,
                priority=priority,
                key=key,
                max_attempts=self.max_attempts if max_attempts is None else max_attempts,
                raise_if_dropped=raise_if_dropped,
                connection=connection,
            ),
        )

    def payload(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> Payload:
        """Return what a message for this call holds."""
        try:
            return {"task": self.name, "arguments": self.arguments.to_json(arguments, options)}
        except InvalidArgument as error:
            raise self._hinted(error, options) from None

    def handler(self, message: "AsyncMessage") -> Handler:
        """Return how a message of this task is worked."""
        return self._handler if message.max_attempts is None else self._handler_of_limited

    def _hinted(self, error: InvalidArgument, given: dict[str, Any]) -> InvalidArgument:
        """Return the error for a call; if it was given an option, with the path where that belongs."""
        misplaced = [name for name in given if name in OPTIONS and not self.arguments.takes(name)]
        if not misplaced:
            return error
        moved = ", ".join(f"{name}={_written(given[name])}" for name in misplaced)
        function = getattr(self.function, "__name__", "task")
        return InvalidArgument(f"{error}; options go before: {function}.options({moved}).enqueue(...)")

    def _call(self) -> Callable[..., object]:
        function = cast("Callable[..., Any]", self.function)

        if inspect.iscoroutinefunction(function):

            async def call(message: "AsyncMessage") -> None:
                if len(message.content) <= MAX_BYTES_ON_LOOP:
                    bound = self._bound(message)
                else:
                    bound = await asyncio.to_thread(self._bound, message)
                await function(*bound.args, **bound.kwargs)

            return call

        def call_in_thread(message: "Message") -> object:
            bound = self._bound(message)
            # An async function behind a decorator answers a coroutine, which the worker awaits.
            return function(*bound.args, **bound.kwargs)

        return call_in_thread

    def _bound(self, message: "AsyncMessage | Message") -> inspect.BoundArguments:
        try:
            return self.arguments.from_json(message.payload.get("arguments", {}))
        except (InvalidArgument, DecodeError) as error:
            # As often as it is tried: the arguments stay what they are.
            raise Bury(str(error)) from error
        except StopIteration as error:
            # Raised where one of the arguments was made; nobody could await it.
            raise awaitable_error(error) from error


@dataclass(frozen=True)
class PreparedTask(Generic[P, Returned, Answer]):
    """A task with the options of its next messages."""

    task: Task[P, Returned, Answer]
    options: EnqueueOptions

    @property
    def not_a_handler(self) -> str:
        """Why a worker must not call a method of this with a message."""
        return self.task.not_a_handler

    def enqueue(self, channel: str, /, *arguments: P.args, **options: P.kwargs) -> Answer:
        """Have a worker call the function with these arguments."""
        queue = cast("Any", self.task.queue)
        payload = self.task.payload(arguments, options)
        answer: Answer = queue.enqueue(channel, payload, **vars(self.options))
        return answer

    def message(self, channel: str, /, *arguments: P.args, **options: P.kwargs) -> NewMessage:
        """Return the message for `queue.enqueue_many()` or `copy_in()`."""
        of_call = ("connection", "raise_if_dropped")
        given = {name: value for name, value in vars(self.options).items() if name not in of_call}
        return NewMessage(channel=channel, payload=self.task.payload(arguments, options), **given)


def _written(value: object) -> str:
    """Return a value as it is written in a program, if that is short: a connection is not."""
    return shown(value, 40) if isinstance(value, int | float | str) else "..."
