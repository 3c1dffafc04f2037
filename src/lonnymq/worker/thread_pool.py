"""ThreadPool for handlers that block. Daemons: a handler that hangs must not keep a worker from ending."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

Job = tuple["asyncio.Future[Any]", Callable[[], Any]]


class ThreadPool:
    """As many as are needed at the same time, kept for the next job."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._started = 0
        self._busy = 0

    async def run(self, function: Callable[[Any], object], argument: Any) -> Any:
        """Call the function in a thread, in a copy of the present context, and await its result."""
        self._busy += 1
        if self._busy > self._started:
            self._started += 1
            threading.Thread(target=self._work, name=f"lonnymq-handler-{self._started}", daemon=True).start()
        future = asyncio.get_running_loop().create_future()
        context = copy_context()
        self._jobs.put((future, lambda: context.run(function, argument)))
        return await future

    def _answer(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        # Only now: the thread of a job that nobody awaits any more is taken all the same.
        self._busy -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(awaitable_error(error))

    def close(self) -> None:
        """Let idle threads end; those that hang end with the process."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            result: Any = None
            error: BaseException | None = None
            try:
                result = call()
            except BaseException as raised:  # noqa: BLE001 - the one who awaits it decides
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody awaits it
                future.get_loop().call_soon_threadsafe(self._answer, future, result, error)
            # Nothing of this job is kept until the next one comes.
            del job, future, call, result, error


def awaitable_error(error: BaseException) -> BaseException:
    """Return the error, or another in place of one that has a meaning of its own to those who await."""
    if isinstance(error, StopIteration | GeneratorExit):
        return RuntimeError(f"the handler raised {type(error).__name__}")
    return error
