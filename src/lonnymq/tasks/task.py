"""A function whose calls are messages."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypedDict, TypeVar, cast, overload

from lonnymq.calls.headers import BURIED_ID, ON_BURIED
from lonnymq.calls.result import encode_result, is_wanted, keep_header
from lonnymq.errors import DecodeError, InvalidArgument
from lonnymq.model import NewMessage
from lonnymq.tasks.arguments import Arguments
from lonnymq.tasks.enqueued import AsyncEnqueued, Enqueued
from lonnymq.tasks.returned import ReturnValue
from lonnymq.texts import short_repr, truncate
from lonnymq.worker.handler import Bury, Handler, require_handler_function
from lonnymq.worker.retry import Retry
from lonnymq.worker.thread_pool import awaitable_error

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.client.sync import Message
    from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
    from lonnymq.connections.sync.borrowed import BorrowedConnection
    from lonnymq.tasks.app import App
    from lonnymq.tasks.registry import TaskRegistry

P = ParamSpec("P")
Returned = TypeVar("Returned")
Result = TypeVar("Result")


class Payload(TypedDict):
    """The payload of a task's message."""

    task: str
    arguments: dict[str, Any]


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


class Default(Enum):
    """Stands for an argument that was not given."""

    DEFAULT = "default"


# With the delays of Retry(), about half a day.
DEFAULT_MAX_ATTEMPTS = 25
# The arguments of a larger content are converted in a thread. On the loop, that would hold up the heartbeats
# of all other messages. Decoding JSON in a thread would not help, because Python's decoder keeps the GIL.
MAX_BYTES_ON_LOOP = 100_000
OPTIONS = frozenset(field.name for field in fields(EnqueueOptions))


class Task(Generic[P, Returned]):
    """Calling a task runs its function at once; enqueueing it lets a worker run it."""

    def __init__(
        self,
        registry: "TaskRegistry",
        function: Callable[P, Returned],
        *,
        name: str,
        max_attempts: "int | Default | None",
        timeout: timedelta | float | None,
        retry: Retry,
        on_buried: Callable[[Any], object] | None = None,
        keep_result: timedelta | float | None = None,
    ) -> None:
        self._registry = registry
        self.function = function
        self.name = name
        # Sent with each message. The default is not, so that it does not override the limit of a channel.
        self.max_attempts = None if isinstance(max_attempts, Default) else max_attempts
        self.arguments = Arguments(function, self.name)
        self.returned = ReturnValue(function, self.name)
        keep_header(keep_result)
        self.keep_result = keep_result
        # The task's limit is only for messages without a limit of their own or of their channel.
        self._handler_without_limit = Handler(
            call=self._create_call(), name=name, timeout=timeout, retry=retry
        )
        limit = DEFAULT_MAX_ATTEMPTS if isinstance(max_attempts, Default) else max_attempts
        self._handler = replace(self._handler_without_limit, max_attempts=limit)
        self._notice_handler: Handler | None = None
        if on_buried is not None:
            require_handler_function("on_buried", on_buried)
            self._notice_handler = Handler(
                call=on_buried, name=truncate(f"{name} on_buried", 255), max_attempts=DEFAULT_MAX_ATTEMPTS
            )
        functools.update_wrapper(self, function)

    @property
    def app(self) -> "App[Any]":
        """The app that has this task."""
        return self._registry.app

    @property
    def not_a_handler(self) -> str:
        """Why a worker must not call this, or a method of it, with a message."""
        return f"{self.name!r} is a task, which takes its own arguments; pass its app instead"

    @property
    def function_name(self) -> str:
        """The name of the function, for errors."""
        return getattr(self.function, "__name__", "task")

    def __call__(self, *arguments: P.args, **options: P.kwargs) -> Returned:
        return self.function(*arguments, **options)

    def __repr__(self) -> str:
        return f"<Task {self.name!r}>"

    @overload
    def enqueue(
        self: "Task[P, Coroutine[Any, Any, Result]]",
        channel: str,
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Enqueued[Result]: ...
    @overload
    def enqueue(
        self: "Task[P, Result]",
        channel: str,
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Enqueued[Result]: ...
    def enqueue(self, channel: str, /, *arguments: Any, **options: Any) -> Enqueued[Any]:
        """Have a worker call the function with these arguments."""
        prepared: PreparedTask[..., Any] = self.options()
        return prepared.enqueue(channel, *arguments, **options)

    @overload
    def enqueue_async(
        self: "Task[P, Coroutine[Any, Any, Result]]",
        channel: str,
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Coroutine[Any, Any, AsyncEnqueued[Result]]: ...
    @overload
    def enqueue_async(
        self: "Task[P, Result]",
        channel: str,
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Coroutine[Any, Any, AsyncEnqueued[Result]]: ...
    def enqueue_async(
        self, channel: str, /, *arguments: Any, **options: Any
    ) -> Coroutine[Any, Any, AsyncEnqueued[Any]]:
        """Have a worker call the function with these arguments; awaited in async code."""
        prepared: PreparedTask[..., Any] = self.options()
        return prepared.enqueue_async(channel, *arguments, **options)

    def message(self, channel: str, /, *arguments: P.args, **options: P.kwargs) -> NewMessage:
        """Return the message for `queue.enqueue_many()` or `queue.copy_in()`."""
        return self.options().message(channel, *arguments, **options)

    def options(
        self,
        *,
        at: datetime | None = None,
        delay: timedelta | float | None = None,
        priority: int | None = None,
        key: str | None = None,
        max_attempts: int | None = None,
        headers: Mapping[str, str] | None = None,
        keep_result: timedelta | float | None = None,
        raise_if_dropped: bool = False,
        connection: "BorrowedConnection | AsyncBorrowedConnection | None" = None,
    ) -> "PreparedTask[P, Returned]":
        """Set options for `enqueue` or `message`: `resize.options(delay=60).enqueue("acme", 7)`."""
        return PreparedTask(
            self,
            EnqueueOptions(
                at=at,
                delay=delay,
                priority=priority,
                key=key,
                max_attempts=self.max_attempts if max_attempts is None else max_attempts,
                headers=headers,
                keep_result=self.keep_result if keep_result is None else keep_result,
                raise_if_dropped=raise_if_dropped,
                connection=connection,
            ),
        )

    def headers(self, channel: str, given: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Return the headers of a message of this task, from those given in its options."""
        if self._notice_handler is None or not isinstance(given, Mapping | None):
            return given
        return {ON_BURIED: channel, **(given or {})}

    def payload(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> Payload:
        """Return the payload of a message for this call."""
        try:
            return {"task": self.name, "arguments": self.arguments.to_json(arguments, options)}
        except InvalidArgument as error:
            raise self._add_hint(error, options) from None

    def handler(self, message: "AsyncMessage") -> Handler:
        """Return the handler of a message of this task, or of the notice that one of them was buried."""
        if message.headers_json is not None and BURIED_ID in message.headers:
            if self._notice_handler is None:
                raise Bury(f"a message of task {self.name!r} was buried, but the task has no on_buried")
            return self._notice_handler
        return self._handler if message.max_attempts is None else self._handler_without_limit

    def _add_hint(self, error: InvalidArgument, given: dict[str, Any]) -> InvalidArgument:
        """Return the error; if an option was passed as an argument, say how to pass it."""
        misplaced = [name for name in given if name in OPTIONS and not self.arguments.takes(name)]
        if not misplaced:
            return error
        moved = ", ".join(f"{name}={_format_option(given[name])}" for name in misplaced)
        return InvalidArgument(
            f"{error}; options go before the arguments: {self.function_name}.options({moved}).enqueue(...)"
        )

    def _create_call(self) -> Callable[..., object]:
        function = cast("Callable[..., Any]", self.function)

        if inspect.iscoroutinefunction(function):

            async def call(message: "AsyncMessage") -> None:
                if len(message.content) <= MAX_BYTES_ON_LOOP:
                    bound = self._bind(message)
                else:
                    bound = await asyncio.to_thread(self._bind, message)
                self._keep_result(message, await function(*bound.args, **bound.kwargs))

            return call

        def call_in_thread(message: "Message") -> object:
            bound = self._bind(message)
            returned = function(*bound.args, **bound.kwargs)
            if not inspect.isawaitable(returned):
                self._keep_result(message, returned)
                return None

            # An async function inside a decorator returns a coroutine, which the worker awaits.
            async def wait() -> None:
                self._keep_result(message, await returned)

            return wait()

        return call_in_thread

    def _keep_result(self, message: "AsyncMessage | Message", returned: Any) -> None:
        """Have the worker send what the function returned, if the producer asked for it."""
        if message.attempt_state is None or not is_wanted(message):
            return
        try:
            message.attempt_state.result = encode_result(self.returned.to_json(returned), message.queue.codec)
        except Exception as error:
            # The function has done its work: a retry would do it again, and fail in the same way.
            raise Bury(f"the task has run, but its result cannot be kept: {error}") from error

    def _bind(self, message: "AsyncMessage | Message") -> inspect.BoundArguments:
        try:
            return self.arguments.from_json(message.payload.get("arguments", {}))
        except (InvalidArgument, DecodeError) as error:
            # A retry would fail again, because the arguments stay the same.
            raise Bury(str(error)) from error
        except StopIteration as error:
            # Raised by the constructor of an argument; a future cannot hold it.
            raise awaitable_error(error) from error


@dataclass(frozen=True)
class PreparedTask(Generic[P, Returned]):
    """A task with options for its messages."""

    task: Task[P, Returned]
    options: EnqueueOptions

    @property
    def not_a_handler(self) -> str:
        """Why a worker must not call a method of this with a message."""
        return self.task.not_a_handler

    @overload
    def enqueue(
        self: "PreparedTask[P, Coroutine[Any, Any, Result]]",
        channel: str,
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Enqueued[Result]: ...
    @overload
    def enqueue(
        self: "PreparedTask[P, Result]",
        channel: str,
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Enqueued[Result]: ...
    def enqueue(self, channel: str, /, *arguments: Any, **options: Any) -> Enqueued[Any]:
        """Have a worker call the function with these arguments."""
        payload = self.task.payload(arguments, options)
        queue = self.task.app.clients.blocking_queue(self.task.function_name)
        created = queue.enqueue(channel, payload, **self._options_for(channel))
        return Enqueued(created.outcome, created.id, queue, self.task.returned.from_json)

    @overload
    def enqueue_async(
        self: "PreparedTask[P, Coroutine[Any, Any, Result]]",
        channel: str,
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Coroutine[Any, Any, AsyncEnqueued[Result]]: ...
    @overload
    def enqueue_async(
        self: "PreparedTask[P, Result]",
        channel: str,
        /,
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Coroutine[Any, Any, AsyncEnqueued[Result]]: ...
    def enqueue_async(
        self, channel: str, /, *arguments: Any, **options: Any
    ) -> Coroutine[Any, Any, AsyncEnqueued[Any]]:
        """Have a worker call the function with these arguments; awaited in async code."""
        # Not an "async def": mistakes raise here, not only when the result is awaited.
        payload = self.task.payload(arguments, options)
        queue = self.task.app.clients.async_queue(self.task.function_name)

        async def enqueue() -> AsyncEnqueued[Any]:
            created = await queue.enqueue(channel, payload, **self._options_for(channel))
            return AsyncEnqueued(created.outcome, created.id, queue, self.task.returned.from_json)

        return enqueue()

    def message(self, channel: str, /, *arguments: P.args, **options: P.kwargs) -> NewMessage:
        """Return the message for `queue.enqueue_many()` or `queue.copy_in()`."""
        call_options = ("connection", "raise_if_dropped")
        given = self._options_for(channel)
        for name in call_options:
            del given[name]
        return NewMessage(channel=channel, payload=self.task.payload(arguments, options), **given)

    def _options_for(self, channel: str) -> dict[str, Any]:
        return {**vars(self.options), "headers": self.task.headers(channel, self.options.headers)}


def _format_option(value: object) -> str:
    """Return a value as Python source if it is short, unlike a connection."""
    return short_repr(value, 40) if isinstance(value, int | float | str) else "..."
