"""Tasks that run one after another: one message, which goes on with the next step when one has returned."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from lonnymq.calls import argument
from lonnymq.errors import InvalidArgument, invalid, invalid_kind
from lonnymq.model import NewMessage
from lonnymq.tasks.enqueued import AsyncEnqueued, Enqueued
from lonnymq.tasks.prepared_call import EnqueueOptions, Payload, PreparedCall
from lonnymq.tasks.steps import MAX_STEPS
from lonnymq.tasks.task import PreparedTask, Task

if TYPE_CHECKING:
    from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
    from lonnymq.connections.sync.borrowed import BorrowedConnection

P = ParamSpec("P")
Q = ParamSpec("Q")
Returned = TypeVar("Returned")
Next = TypeVar("Next")


@dataclass(frozen=True)
class Chain(Generic[Returned]):
    """Tasks that are called one after another; `Returned` is what the last one returns."""

    # The last task, and the call of the first one with the steps that follow it.
    _last: Task[..., Any]
    _call: PreparedCall[Returned]

    @overload
    def then(
        self: "Chain[None]",
        task: "Task[Q, Coroutine[Any, Any, Next]] | PreparedTask[Q, Coroutine[Any, Any, Next]]",
        /,
        *arguments: Q.args,
        **options: Q.kwargs,
    ) -> "Chain[Next]": ...
    @overload
    def then(
        self: "Chain[None]",
        task: "Task[Q, Next] | PreparedTask[Q, Next]",
        /,
        *arguments: Q.args,
        **options: Q.kwargs,
    ) -> "Chain[Next]": ...
    @overload
    def then(
        self,
        task: "Task[Concatenate[Returned, Q], Coroutine[Any, Any, Next]]"
        " | PreparedTask[Concatenate[Returned, Q], Coroutine[Any, Any, Next]]",
        /,
        *arguments: Q.args,
        **options: Q.kwargs,
    ) -> "Chain[Next]": ...
    @overload
    def then(
        self,
        task: "Task[Concatenate[Returned, Q], Next] | PreparedTask[Concatenate[Returned, Q], Next]",
        /,
        *arguments: Q.args,
        **options: Q.kwargs,
    ) -> "Chain[Next]": ...
    def then(self, task: Any, /, *arguments: Any, **options: Any) -> "Chain[Any]":
        """Add a step. Its first argument is what the step before returns, unless that is annotated `-> None`.

        `task.options(delay=...)` lets it wait; the other options are those of the chain.
        """
        task, delay_ms = _task_and_delay("task", task)
        step = task.step(arguments, options, takes_result=not self.returns_none)
        if delay_ms is not None:
            step["delay_ms"] = delay_ms
        steps = [*self._call.payload.get("then", ()), step]
        if len(steps) >= MAX_STEPS:
            raise invalid("the chain", f"{len(steps) + 1} steps", f"at most {MAX_STEPS} steps")
        payload: Payload = {**self._call.payload, "then": steps}
        return Chain(task, replace(self._call, payload=payload, returned=task.returned))

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
    ) -> "Chain[Returned]":
        """Set the options of its message; `max_attempts` is for each step, `keep_result` for the last one.

        Options that were set before, and are not given now, stay.
        """
        given = {
            "at": at,
            "delay": delay,
            "priority": priority,
            "key": key,
            "max_attempts": max_attempts,
            "headers": headers,
            "keep_result": keep_result,
            "raise_if_dropped": raise_if_dropped or None,
            "connection": connection,
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        options = replace(self._call.options, **changes)
        return replace(self, _call=replace(self._call, options=options))

    def enqueue(self, channel: str, /) -> Enqueued[Returned]:
        """Have workers call the tasks, one after another, each after the one before has returned."""
        return self._prepared().enqueue(channel)

    def enqueue_async(self, channel: str, /) -> Coroutine[Any, Any, AsyncEnqueued[Returned]]:
        """Have workers call the tasks, one after another; awaited in async code."""
        return self._prepared().enqueue_async(channel)

    def message(self, channel: str, /) -> NewMessage:
        """Return the message for `queue.enqueue_many()` or `queue.copy_in()`."""
        return self._prepared().message(channel)

    @property
    def returns_none(self) -> bool:
        """Whether its last task is annotated `-> None`."""
        return self._last.returned.is_none

    def _prepared(self) -> PreparedCall[Returned]:
        if self._call.options.keep_result is not None:
            return self._call
        return replace(self._call, options=replace(self._call.options, keep_result=self._last.keep_result))


def _task_and_delay(name: str, task: Any) -> tuple[Task[..., Any], int | None]:
    """Return the task of a step, and its delay in milliseconds."""
    if isinstance(task, Task):
        return task, None
    if not isinstance(task, PreparedTask):
        raise invalid_kind(name, task, "a task, or task.options(delay=...)")
    if replace(task.options, delay=None) != task.task.options().options:
        raise InvalidArgument(
            f"{task.task.name}: a step of a chain has no option but delay; the others are those of the whole"
            " chain: chain(...).then(...).options(...)"
        )
    return task.task, argument.delay_ms("delay", task.options.delay)


@overload
def chain(
    task: Task[P, Coroutine[Any, Any, Next]], /, *arguments: P.args, **options: P.kwargs
) -> Chain[Next]: ...
@overload
def chain(task: Task[P, Next], /, *arguments: P.args, **options: P.kwargs) -> Chain[Next]: ...
def chain(task: Task[..., Any], /, *arguments: Any, **options: Any) -> Chain[Any]:
    """Begin a chain with a call of this task: `chain(fetch, url).then(resize, width=640).enqueue("acme")`."""
    if not isinstance(task, Task):
        raise invalid_kind("task", task, "a task; options are set with chain(...).options(...)")
    payload = task.payload(arguments, options)
    return Chain(task, PreparedCall(task, payload, EnqueueOptions(), task.returned))
