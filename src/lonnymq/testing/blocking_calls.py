"""Runs plain handlers where the test chooses, not in a worker's threads."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from lonnymq.worker.thread_pool import ThreadPool, awaitable_error


@dataclass(frozen=True)
class BlockingCall:
    """A call that blocks, and the future for its result."""

    call: Callable[[], Any]
    future: "asyncio.Future[Any]"

    def run(self) -> None:
        """Run the call in this thread, in which no event loop may be running."""
        try:
            result = self.call()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - raised where the future is awaited
            self._fail(error)
        else:
            if not self.future.done():
                self.future.set_result(result)

    async def run_in_thread(self) -> None:
        """Run the call in another thread, as a worker does."""
        try:
            result = await asyncio.to_thread(self.call)
        except Exception as error:  # noqa: BLE001 - raised where the future is awaited
            self._fail(error)
        else:
            if not self.future.done():
                self.future.set_result(result)

    def _fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(awaitable_error(error))


class BlockingCalls(ThreadPool):
    """Replaces a worker's threads: collects calls for the test to run, and waits for their results."""

    def __init__(self, activity: asyncio.Event) -> None:
        super().__init__()
        self.pending: deque[BlockingCall] = deque()
        self._activity = activity

    async def run(self, function: Callable[[Any], object], argument: Any) -> Any:
        context = copy_context()
        call = BlockingCall(
            lambda: context.run(function, argument), asyncio.get_running_loop().create_future()
        )
        self.pending.append(call)
        self._activity.set()
        return await call.future
