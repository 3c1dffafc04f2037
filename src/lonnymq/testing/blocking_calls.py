"""Plain handlers of a test run: not in a thread of a worker, but where the test says."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from lonnymq.worker.threads import Threads, awaitable


@dataclass(frozen=True)
class Job:
    """A call that blocks, and the future that waits for its result."""

    call: Callable[[], Any]
    future: "asyncio.Future[Any]"

    def run(self) -> None:
        """Call it in this thread, where no loop may be running."""
        try:
            result = self.call()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the one who awaits it decides
            self._fail(error)
        else:
            if not self.future.done():
                self.future.set_result(result)

    async def run_in_thread(self) -> None:
        """Call it in another thread, as a worker does."""
        try:
            result = await asyncio.to_thread(self.call)
        except Exception as error:  # noqa: BLE001 - the one who awaits it decides
            self._fail(error)
        else:
            if not self.future.done():
                self.future.set_result(result)

    def _fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(awaitable(error))


class Outside(Threads):
    """Stands in for a worker's threads: hands out what is to be called, and waits for its result."""

    def __init__(self, news: asyncio.Event) -> None:
        super().__init__()
        self.jobs: deque[Job] = deque()
        self._news = news

    async def run(self, function: Callable[[Any], object], argument: Any) -> Any:
        context = copy_context()
        job = Job(lambda: context.run(function, argument), asyncio.get_running_loop().create_future())
        self.jobs.append(job)
        self._news.set()
        return await job.future
