"""A registry of tasks and crons, which an app includes."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload

from lonnymq.calls import argument
from lonnymq.calls import cron as cron_calls
from lonnymq.calls.headers import encode_headers
from lonnymq.cron import schedule
from lonnymq.errors import LonnyError, invalid, invalid_kind
from lonnymq.model import CatchUp, Cron
from lonnymq.tasks.task import Default, P, Returned, Task
from lonnymq.worker.retry import Retry

if TYPE_CHECKING:
    from lonnymq.tasks.app import App


class TaskRegistry:
    """Tasks and crons that are declared apart from their app, for example in a module of their own.

    tasks = lonnymq.TaskRegistry()

    @tasks.task
    def resize(video: int) -> None: ...

    app.include(tasks)
    """

    def __init__(self) -> None:
        self._tasks: dict[str, Task[..., Any]] = {}
        self._crons: dict[str, Cron] = {}
        # The registry that includes this one.
        self._parent: TaskRegistry | None = None

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        """All tasks by name."""
        return self._tasks

    @property
    def crons(self) -> Sequence[Cron]:
        """All crons, in the order of their declaration."""
        return tuple(self._crons.values())

    @property
    def app(self) -> "App[Any]":
        """The app that includes this registry."""
        if self._parent is None:
            raise LonnyError("the task's registry belongs to no app yet: call app.include(registry) first")
        return self._parent.app

    @overload
    def task(self, function: Callable[P, Returned], /) -> Task[P, Returned]: ...
    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        max_attempts: int | Default | None = Default.DEFAULT,
        timeout: timedelta | float | None = None,
        retry: Retry | None = None,
        on_failure: Callable[[Any, BaseException], object] | None = None,
        on_buried: Callable[[Any], object] | None = None,
        keep_result: timedelta | float | None = None,
    ) -> Callable[[Callable[P, Returned]], Task[P, Returned]]: ...
    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        max_attempts: int | Default | None = Default.DEFAULT,
        timeout: timedelta | float | None = None,
        retry: Retry | None = None,
        on_failure: Callable[[Any, BaseException], object] | None = None,
        on_buried: Callable[[Any], object] | None = None,
        keep_result: timedelta | float | None = None,
    ) -> Any:
        """Turn a function into a task; messages refer to it by `name`, by default the function's name.

        After `max_attempts` a message is buried. Default: the channel's limit, otherwise 25; None: the
        channel's limit, otherwise unlimited. After each attempt that fails or is lost, a worker calls
        `on_failure` with the message and the exception. When a message is buried, a worker calls
        `on_buried` with a notice: a message with the same payload, and the reason in its headers.
        With `keep_result`, what the function returns is kept for that time, at most 7 days.
        """

        def decorate(function: Callable[P, Returned]) -> Task[P, Returned]:
            if isinstance(function, Task) or not inspect.isroutine(function):
                raise invalid("task", function, "a function: @app.task goes directly above its def")
            if _is_method(function):
                raise invalid(
                    "task", function, "a function: a method has an instance or a class that cannot be sent"
                )
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise invalid(
                    "task", function, "a function that does its work when it is called, not a generator"
                )
            task: Task[P, Returned] = Task(
                self,
                function,
                name=argument.text("name", name or function.__name__, 1, 255),
                max_attempts=max_attempts,
                timeout=timeout,
                retry=Retry() if retry is None else retry,
                on_failure=on_failure,
                on_buried=on_buried,
                keep_result=keep_result,
            )
            self._add({task.name: task}, {})
            return task

        return decorate if function is None else decorate(function)

    def cron(
        self,
        expression: str,
        *,
        channel: str,
        name: str | None = None,
        timezone: str = "UTC",
        catch_up: CatchUp | str = CatchUp.LATEST,
        arguments: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Callable[[Callable[P, Returned]], Task[P, Returned]]:
        """Enqueue a task at every tick of an expression; a plain function becomes a task first.

        Each tick is enqueued once, however many workers run. `name` is by default the task's name.
        Each message has these `headers`.
        """
        schedule.require_valid(expression, timezone)
        encode_headers(headers)

        def decorate(function: Callable[P, Returned]) -> Task[P, Returned]:
            task = function if isinstance(function, Task) else self.task(function)
            cron = Cron(
                name=cron_calls.cron_name(name or task.name),
                expression=expression,
                timezone=timezone,
                channel=argument.channel(channel),
                payload=task.payload((), dict(arguments or {})),
                catch_up=CatchUp(argument.enum_value("catch_up", catch_up, CatchUp)),
                max_attempts=task.max_attempts,
                headers=task.headers(channel, headers),
            )
            self._add({}, {cron.name: cron})
            return task

        return decorate

    def include(self, *registries: "TaskRegistry") -> None:
        """Add the tasks and crons of these registries, also those that they declare later."""
        for registry in registries:
            if type(registry) is not TaskRegistry:
                raise invalid_kind("registry", registry, "a lonnymq.TaskRegistry")
            if registry._parent is not None:
                raise invalid("registry", registry, "one that no other app or registry includes")
            if registry in self._with_parents():
                raise invalid("registry", registry, "another one, which does not include this one")
            self._add(registry._tasks, registry._crons)
            registry._parent = self

    def _add(self, tasks: Mapping[str, Task[..., Any]], crons: Mapping[str, Cron]) -> None:
        """Add these to this registry and to all that include it, or to none of them."""
        registries = self._with_parents()
        for registry in registries:
            for name in tasks.keys() & registry._tasks.keys():
                raise invalid("name", name, "a name that no other task of this app has")
            for name in crons.keys() & registry._crons.keys():
                raise invalid("name", name, "a name that no other cron of this app has")
        for registry in registries:
            registry._tasks.update(tasks)
            registry._crons.update(crons)

    def _with_parents(self) -> "list[TaskRegistry]":
        """Return this registry and all that include it, the app last."""
        registries = [self]
        while (parent := registries[-1]._parent) is not None:
            registries.append(parent)
        return registries


def _is_method(function: Any) -> bool:
    """Whether this is a function of a class, and needs an instance or the class as its first argument."""
    if isinstance(function, classmethod):
        return True
    place = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not place or place.endswith("<locals>") or not inspect.isfunction(function):
        return False
    return next(iter(inspect.signature(function).parameters), "") == "self"
