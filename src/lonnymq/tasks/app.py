"""An app: the queue, the tasks and the crons of a program."""

import importlib
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, cast, overload

from lonnymq.calls import argument
from lonnymq.calls import cron as cron_calls
from lonnymq.client.aio import AsyncQueue
from lonnymq.client.sync import Queue
from lonnymq.cron import schedule
from lonnymq.errors import DecodeError, InvalidArgument, invalid, invalid_kind
from lonnymq.model import CatchUp, Created, Cron
from lonnymq.tasks import ticker
from lonnymq.tasks.task import Answer, Default, P, Returned, Task
from lonnymq.texts import list_names, short_repr
from lonnymq.worker.handler import Bury, Handler
from lonnymq.worker.retry import Retry

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.worker import Middleware, Worker


class App(Generic[Answer]):
    """Tasks are functions whose calls are messages of a queue.

    app = lonnymq.App(queue)

    @app.task(max_attempts=5)
    def resize(video: int, width: int = 640) -> None: ...

    resize.enqueue("acme", video=7)

    On an AsyncQueue, enqueue() is awaited.
    """

    @overload
    def __init__(self: "App[Created]", queue: Queue) -> None: ...
    @overload
    def __init__(self: "App[Coroutine[Any, Any, Created]]", queue: AsyncQueue) -> None: ...
    def __init__(self, queue: Queue | AsyncQueue) -> None:
        if not isinstance(queue, Queue | AsyncQueue):
            raise invalid_kind("queue", queue, "a lonnymq.Queue or a lonnymq.AsyncQueue")
        self.queue = queue
        self._tasks: dict[str, Task[..., Any, Answer]] = {}
        self._crons: dict[str, Cron] = {}

    @property
    def tasks(self) -> Mapping[str, Task[..., Any, Answer]]:
        """All tasks by name."""
        return self._tasks

    @property
    def crons(self) -> Sequence[Cron]:
        """All crons, in the order of their declaration."""
        return tuple(self._crons.values())

    def task(
        self,
        *,
        name: str | None = None,
        max_attempts: int | Default | None = Default.DEFAULT,
        timeout: timedelta | float | None = None,
        retry: Retry | None = None,
    ) -> Callable[[Callable[P, Returned]], Task[P, Returned, Answer]]:
        """Turn a function into a task; messages refer to it by `name`, by default the function's name.

        After `max_attempts` a message is buried. Default: the channel's limit, otherwise 25; None: the
        channel's limit, otherwise unlimited.
        """

        def decorate(function: Callable[P, Returned]) -> Task[P, Returned, Answer]:
            if isinstance(function, Task) or not inspect.isroutine(function):
                raise invalid("task", function, "a function: @app.task() goes directly above its def")
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise invalid(
                    "task", function, "a function that does its work when it is called, not a generator"
                )
            task: Task[P, Returned, Answer] = Task(
                self,
                function,
                name=argument.text("name", name or function.__name__, 1, 255),
                max_attempts=max_attempts,
                timeout=timeout,
                retry=Retry() if retry is None else retry,
            )
            if task.name in self._tasks:
                raise invalid("name", task.name, "a name that no other task of this app has")
            self._tasks[task.name] = cast("Task[..., Any, Answer]", task)
            return task

        return decorate

    def cron(
        self,
        expression: str,
        *,
        channel: str,
        name: str | None = None,
        timezone: str = "UTC",
        catch_up: CatchUp | str = CatchUp.LATEST,
        arguments: Mapping[str, Any] | None = None,
    ) -> Callable[[Callable[P, Returned]], Task[P, Returned, Answer]]:
        """Enqueue a task at every tick of an expression; a plain function becomes a task first.

        Each tick is enqueued once, however many workers run. `name` is by default the task's name.
        """
        schedule.require_valid(expression, timezone)

        def decorate(function: Callable[P, Returned]) -> Task[P, Returned, Answer]:
            task = function if isinstance(function, Task) else self.task()(function)
            cron = Cron(
                name=cron_calls.cron_name(name or task.name),
                expression=expression,
                timezone=timezone,
                channel=argument.channel(channel),
                payload=task.payload((), dict(arguments or {})),
                catch_up=CatchUp(argument.enum_value("catch_up", catch_up, CatchUp)),
                max_attempts=task.max_attempts,
            )
            if cron.name in self._crons:
                raise invalid("name", cron.name, "a name that no other cron of this app has")
            self._crons[cron.name] = cron
            return task

        return decorate

    def route(self, message: "AsyncMessage") -> Handler:
        """Return the handler of a message; raise Bury if no task of this app can process it."""
        try:
            payload = message.payload
        except DecodeError as error:
            raise Bury(str(error)) from error
        if not isinstance(payload, dict) or not isinstance(payload.get("task"), str):
            raise Bury(
                'the message does not name a task: its payload must be {"task": name, "arguments": {...}}'
            )
        task = self._tasks.get(payload["task"])
        if task is None:
            names = list_names(sorted(self._tasks), 20) or "none"
            raise Bury(f"unknown task {short_repr(payload['task'])}: the tasks of this worker are {names}")
        return task.handler(message)

    async def tick_forever(self, queue: AsyncQueue, call_timeout_s: float) -> None:
        """Declare this app's crons and tick all due crons, until cancelled; a worker runs this."""
        await ticker.tick_forever(queue, self.crons, call_timeout_s)

    def worker(self, *, middleware: Sequence["Middleware"] = (), **settings: Any) -> "Worker":
        """Return a worker for this app; `settings` are those of WorkerSettings."""
        from lonnymq.worker import Worker, WorkerSettings

        try:
            chosen = WorkerSettings(**settings)
        except TypeError as error:
            raise InvalidArgument(f"settings must be fields of WorkerSettings: {error}") from None
        return Worker(self.queue, self, settings=chosen, middleware=middleware)

    def location(self) -> tuple[str, str] | None:
        """Return the module and the variable that refer to this app, if there are any."""
        for module in list(sys.modules.values()):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                if value is self:
                    return module.__name__, name
        return None

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        """Pickle the app by its name, as functions are."""
        location = self.location()
        if location is None:
            raise TypeError("an App is pickled by its name: assign it to a variable of a module")
        return _load, location


def _load(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)
