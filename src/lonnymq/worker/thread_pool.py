"""Daemon threads for handlers that block: one that hangs does not keep the process from ending."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

Job = tuple["asyncio.Future[Any]", Callable[[], Any]]


class ThreadPool:
    """Starts a thread when all others are busy, and keeps threads for later jobs."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._started = 0
        self._busy = 0

    async def run(self, function: Callable[[Any], object], argument: Any) -> Any:
        """Call the function in a thread, in a copy of the current context, and await its result."""
        self._busy += 1
        if self._busy > self._started:
            self._started += 1
            name = f"lonnymq-handler-{self._started}"
            threading.Thread(target=self._run_jobs, name=name, daemon=True).start()
        future = asyncio.get_running_loop().create_future()
        context = copy_context()
        self._jobs.put((future, lambda: context.run(function, argument)))
        return await future

    def close(self) -> None:
        """Let idle threads end; threads that hang end with the process."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            result: Any = None
            error: BaseException | None = None
            try:
                result = call()
            except BaseException as raised:  # noqa: BLE001 - raised again where the result is awaited
                error = raised
            with contextlib.suppress(RuntimeError):  # The loop is closed: the result is not awaited.
                future.get_loop().call_soon_threadsafe(self._set_result, future, result, error)
            # Free this memory now, not when the next job starts.
            del job, future, call, result, error

    def _set_result(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        # Count the thread as idle only now: it is busy even if its result is not awaited any more.
        self._busy -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(awaitable_error(error))


def awaitable_error(error: BaseException) -> BaseException:
    """Return the error, or a RuntimeError in place of one that a future cannot hold."""
    if isinstance(error, StopIteration | GeneratorExit):
        return RuntimeError(f"the handler raised {type(error).__name__}")
    return error
