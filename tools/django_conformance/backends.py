"""Our backend, with what Django's tests of its own backends use beside the interface."""

import asyncio
from typing import Any

from lonnymq.django import get_queue
from lonnymq.django.attempts import TasksOnly, with_connections
from lonnymq.django.tasks import LonnyMQBackend
from lonnymq.worker import Worker, WorkerSettings


class StoringBackend(LonnyMQBackend):
    """In the place of DummyBackend, which lists its results until its tests clear them."""

    def __init__(self, alias: str, params: Any) -> None:
        super().__init__(alias, params)
        self.results: list[Any] = []

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        self.results.append(super().enqueue(task, args, kwargs))
        return self.results[-1]

    def clear(self) -> None:
        get_queue().cancel([int(result.id) for result in self.results])
        self.results.clear()


class RunningBackend(LonnyMQBackend):
    """In the place of ImmediateBackend, which runs a task at once: here, a worker runs it meanwhile."""

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        result = super().enqueue(task, args, kwargs)
        asyncio.run(_work_until_empty())
        return self.get_result(result.id)


async def _work_until_empty() -> None:
    queue, handler = get_queue(), with_connections(TasksOnly())
    worker = Worker(queue, handler, settings=WorkerSettings(concurrency=1))
    serving = asyncio.create_task(worker.serve())
    while (status := queue.status()).waiting or status.leased:  # noqa: ASYNC110 - the worker ends it
        await asyncio.sleep(0.01)
    worker.stop()
    await serving
