"""An app: the queue, the tasks and the crons of a program."""

import importlib
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from lonnymq.client.aio import AsyncQueue
from lonnymq.client.enqueueing import EnqueueMiddleware
from lonnymq.client.instrumentation import Instrumentation
from lonnymq.client.sync import Queue
from lonnymq.errors import DecodeError, InvalidArgument, LonnyError, invalid, invalid_kind
from lonnymq.tasks import ticker
from lonnymq.tasks.clients import Client, TaskClients
from lonnymq.tasks.registry import TaskRegistry
from lonnymq.texts import list_names, short_repr
from lonnymq.worker.handler import Bury, Handler

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.worker import Middleware, Worker


Lifespan = TypeVar("Lifespan", bound=Callable[[], Any])
# No value that a lifespan could yield.
_NO_RESOURCES = object()


class App(TaskRegistry, Generic[Client]):
    """Tasks are functions whose calls are messages of a queue.

    app = lonnymq.App("postgresql://...")

    @app.task(max_attempts=5)
    def resize(video: int, width: int = 640) -> None: ...

    resize.enqueue("acme", video=7)
    await resize.enqueue_async("acme", video=7)

    `queue` is a connection string, a Queue or an AsyncQueue; without one, LONNYMQ_DSN is used. `middleware`
    and `instrumentation` are for the Queue that is created from a connection string.
    """

    @overload
    def __init__(
        self: "App[Queue]",
        queue: str = "",
        *,
        middleware: Sequence[EnqueueMiddleware] = (),
        instrumentation: Instrumentation | None = None,
    ) -> None: ...
    @overload
    def __init__(self, queue: Client) -> None: ...
    def __init__(
        self,
        queue: Any = "",
        *,
        middleware: Sequence[EnqueueMiddleware] = (),
        instrumentation: Instrumentation | None = None,
    ) -> None:
        super().__init__()
        if isinstance(queue, str):
            queue = Queue(queue, middleware=middleware, instrumentation=instrumentation)
        elif middleware or instrumentation is not None:
            name, given = ("middleware", middleware) if middleware else ("instrumentation", instrumentation)
            raise invalid(name, given, "an argument of the queue itself, unless that is a connection string")
        if not isinstance(queue, Queue | AsyncQueue):
            raise invalid_kind("queue", queue, "a connection string, a lonnymq.Queue or a lonnymq.AsyncQueue")
        self.use(cast("Client", queue))
        self._lifespan: Callable[[], Any] | None = None
        # Those of the current worker; and the latest, for code that has no context of a worker, such as a
        # thread that a handler has started.
        self._resources = ContextVar[Any]("resources", default=_NO_RESOURCES)
        self._latest_resources: Any = _NO_RESOURCES

    @property
    def app(self) -> "App[Client]":
        """The app itself."""
        return self

    @property
    def queue(self) -> Client:
        """The queue that the app was given, or a Queue for its connection string."""
        return self._queue

    @property
    def clients(self) -> TaskClients:
        """The clients with which its tasks enqueue."""
        return self._clients

    def lifespan(self, function: Lifespan) -> Lifespan:
        """Have each worker process enter an async context manager before its first message.

            @app.lifespan
            async def open_client():
                async with httpx.AsyncClient() as client:
                    yield client

        Handlers find the yielded value in `app.resources`. It is left after the last message.
        """
        enter: Any = asynccontextmanager(function) if inspect.isasyncgenfunction(function) else function
        if not callable(enter) or inspect.iscoroutinefunction(enter):
            raise invalid(
                "lifespan",
                function,
                "an async generator, or a function that returns an async context manager",
            )
        if self._lifespan is not None:
            raise invalid("lifespan", function, "declared once: one context manager can enter others")
        self._lifespan = enter
        return function

    @property
    def resources(self) -> Any:
        """What the app's lifespan yielded in this worker process."""
        resources = self._resources.get()
        if resources is _NO_RESOURCES:
            resources = self._latest_resources
        if resources is _NO_RESOURCES:
            raise LonnyError("app.resources exists only in a worker, and only if the app has a lifespan")
        return resources

    @asynccontextmanager
    async def enter_lifespan(self) -> AsyncIterator[None]:
        """Enter the lifespan, if there is one; a worker does this around everything that it processes."""
        if self._lifespan is None:
            yield
            return
        async with self._lifespan() as resources:
            self._latest_resources = resources
            token = self._resources.set(resources)
            try:
                yield
            finally:
                self._resources.reset(token)
                if self._latest_resources is resources:
                    self._latest_resources = _NO_RESOURCES

    def use(self, queue: Client) -> None:
        """Have its tasks enqueue into another queue from now on."""
        self._queue = queue
        self._clients = TaskClients(queue)

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
