"""Treats Django's connections around each attempt as Django does around each request."""

from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, reset_queries

from lonnymq.django.task_messages import task_handler
from lonnymq.worker import Bury, Handler

MAX_CACHED = 1000


def with_connections(handler: Any) -> Any:
    """Return a handler, or an App, whose attempts find usable connections and leave none that is too old."""
    if isinstance(handler, Handler):
        return _wrap(handler)
    if callable(getattr(handler, "route", None)):
        return DjangoRouter(handler)
    return _wrap(Handler(call=handler))


class TasksOnly:
    """Has no handlers: a worker without an App runs what django.tasks has enqueued."""

    def route(self, message: Any) -> Handler:
        """Refuse a message that is not of django.tasks."""
        raise Bury("the message is not a task of django.tasks, and the worker was started without an App")


class DjangoRouter:
    """An App, or another object with `route(message)`, with wrapped handlers; runs django.tasks as well."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        # By identity, because messages of one handler make a batch. The inner one is kept with its id.
        self._wrapped: dict[int, tuple[Handler, Handler]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return repr(self._inner)

    def route(self, message: Any) -> Handler:
        """Return the wrapped handler of a message."""
        handler: Handler = task_handler(message) or self._inner.route(message)
        cached = self._wrapped.get(id(handler))
        if cached is None:
            if len(self._wrapped) >= MAX_CACHED:
                self._wrapped.clear()
            cached = self._wrapped[id(handler)] = (handler, _wrap(handler))
        return cached[1]


def _wrap(handler: Handler) -> Handler:
    call: Any = handler.call

    # Connections belong to threads. A plain function runs in one of the worker's threads, and the queries of
    # an async one in the thread of sync_to_async().
    def run(subject: Any) -> Any:
        _begin()
        try:
            return call(subject)
        finally:
            close_old_connections()

    async def run_async(subject: Any) -> Any:
        await sync_to_async(_begin)()
        try:
            return await call(subject)
        finally:
            await sync_to_async(close_old_connections)()

    options = {name: value for name, value in vars(handler).items() if name in Handler.__dataclass_fields__}
    return Handler(**{**options, "call": run_async if handler.is_async else run})


def _begin() -> None:
    # With DEBUG, Django collects all queries.
    reset_queries()
    close_old_connections()
