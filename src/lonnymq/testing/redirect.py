"""Lets an app use another queue during a test."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lonnymq.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lonnymq.client.aio import AsyncQueue
    from lonnymq.client.sync import Queue
    from lonnymq.tasks import App


@contextmanager
def redirect_app(app: "App[Any]", queue: "Queue | AsyncQueue") -> "Iterator[App[Any]]":
    """Have the app and its tasks enqueue into `queue` inside the block, and into their own queue after it."""
    own = app.queue
    if not isinstance(queue, type(own)):
        raise invalid("queue", queue, f"of the same class as the app's own queue, {type(own).__name__}")
    app.use(queue)
    try:
        yield app
    finally:
        app.use(own)
