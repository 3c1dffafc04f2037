"""The queue in applications of FastAPI and Starlette.

from lonnymq.fastapi import QueueDependency, lifespan

app = FastAPI(lifespan=lifespan("postgresql://..."))

@app.post("/videos")
async def create(queue: QueueDependency, video: int) -> None:
    await queue.enqueue("acme", {"video": video})
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from lonnymq.client.aio import AsyncQueue
from lonnymq.errors import LonnyError, invalid_kind
from lonnymq.tasks import App

STATE = "lonnymq"
# An application's own lifespan; what it yields is its state.
Lifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any]]]


def lifespan(queue: "str | AsyncQueue | App[Any]" = "", *, inner: Lifespan | None = None) -> Lifespan:
    """Return a lifespan that keeps a client open while the application runs.

    `queue` is a connection string, an AsyncQueue, or the App of your tasks, whose clients are closed
    as well. `inner` is a lifespan of your own, which begins after this one and ends before it.
    """
    if not isinstance(queue, str | AsyncQueue | App):
        raise invalid_kind("queue", queue, "a connection string, a lonnymq.AsyncQueue or a lonnymq.App")

    @asynccontextmanager
    async def enter(application: Any) -> AsyncIterator[Mapping[str, Any]]:
        tasks = queue if isinstance(queue, App) else None
        client = AsyncQueue(queue) if isinstance(queue, str) else queue
        if isinstance(client, App):
            client = client.clients.async_queue("lifespan")
        try:
            if inner is None:
                yield {STATE: client}
            else:
                async with inner(application) as state:
                    yield {**state, STATE: client}
        finally:
            await client.close()
            if tasks is not None:
                await tasks.clients.close_async()

    return enter


def queue_of(connection: HTTPConnection) -> AsyncQueue:
    """Return the client of a request or a WebSocket; with FastAPI, use QueueDependency instead."""
    client = getattr(connection.state, STATE, None)
    if not isinstance(client, AsyncQueue):
        raise LonnyError(
            "the application has no queue: create it with lifespan=lonnymq.fastapi.lifespan(...)"
        )
    return client


QueueDependency = Annotated[AsyncQueue, Depends(queue_of)]
