"""A function whose calls are messages."""

import functools
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from lonnymq.calls.headers import BURIED_ID, ON_BURIED
from lonnymq.calls.result import keep_header
from lonnymq.errors import InvalidArgument
from lonnymq.model import NewMessage
from lonnymq.tasks.arguments import Arguments
from lonnymq.tasks.attempt_call import attempt_call
from lonnymq.tasks.enqueued import AsyncEnqueued, Enqueued
from lonnymq.tasks.prepared_call import EnqueueOptions, Payload, PreparedCall, Step
from lonnymq.tasks.returned import ReturnValue
from lonnymq.texts import short_repr, truncate
from lonnymq.worker.handler import Bury, Handler, require_handler_function
from lonnymq.worker.retry import Retry

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
    from lonnymq.connections.sync.borrowed import BorrowedConnection
    from lonnymq.tasks.app import App
    from lonnymq.tasks.registry import TaskRegistry

P = ParamSpec("P")
Returned = TypeVar("Returned")
Result = TypeVar("Result")


class Default(Enum):
    """Stands for an argument that was not given."""

    DEFAULT = "default"


# With the delays of Retry(), about half a day.
DEFAULT_MAX_ATTEMPTS = 25
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
        on_failure: Callable[[Any, BaseException], object] | None = None,
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
            call=attempt_call(function, self.arguments, self.returned),
            name=name,
            timeout=timeout,
            retry=retry,
            on_failure=on_failure,
        )
        limit = DEFAULT_MAX_ATTEMPTS if isinstance(max_attempts, Default) else max_attempts
        self._handler = replace(self._handler_without_limit, max_attempts=limit)
        self._notice_handler: Handler | None = None
        if on_buried is not None:
            require_handler_function("on_buried", on_buried)
        if on_buried is not None or on_failure is not None:
            # A notice also reports a last attempt that was lost, which no worker has seen fail.
            self._notice_handler = Handler(
                call=on_buried or _ignore_notice,
                name=truncate(f"{name} on_buried", 255),
                max_attempts=DEFAULT_MAX_ATTEMPTS,
                on_failure=on_failure,
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

    def step(self, arguments: tuple[Any, ...], options: dict[str, Any], *, takes_result: bool) -> Step:
        """Return a later step of a chain; with `takes_result`, its first argument is not yet given."""
        if not takes_result:
            payload = self.payload(arguments, options)
            step = Step(task=payload["task"], arguments=payload["arguments"])
        else:
            takes, others = self.arguments.to_json_after_first(arguments, options)
            step = Step(task=self.name, arguments=others, takes=takes)
        if self._notice_handler is not None:
            step["on_buried"] = True
        return step

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
        return self._call(arguments, options).enqueue(channel)

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
        return self._call(arguments, options).enqueue_async(channel)

    def message(self, channel: str, /, *arguments: P.args, **options: P.kwargs) -> NewMessage:
        """Return the message for `queue.enqueue_many()` or `queue.copy_in()`."""
        return self._call(arguments, options).message(channel)

    def _call(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> PreparedCall[Any]:
        payload = self.task.payload(arguments, options)
        return PreparedCall(self.task, payload, self.options, self.task.returned)


async def _ignore_notice(message: object) -> None:
    """Complete the notice of a task that has no `on_buried`."""


def _format_option(value: object) -> str:
    """Return a value as Python source if it is short, unlike a connection."""
    return short_repr(value, 40) if isinstance(value, int | float | str) else "..."
