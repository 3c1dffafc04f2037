"""Time limits of calls: a dead connection may never report an error."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lonnymq.connections.aio.source import AsyncSource

Result = TypeVar("Result")

# A connection that transfers less than this is treated as dead.
SLOWEST_BYTES_PER_S = 100_000
# How long a cancelled call may clean up, and a dequeue may give back what it has leased.
CLEAN_UP_S = 10.0
# How long to wait for a cancellation to take effect before cancelling again.
CANCEL_AGAIN_S = 1.0
# How long closing a connection may take.
CLOSE_S = 3.0


def timeout_for(timeout_s: float, size: int) -> float:
    """Return the timeout of a call that transfers this many bytes."""
    return timeout_s + size / SLOWEST_BYTES_PER_S


async def call_within(
    source: AsyncSource,
    seconds: float,
    work: Coroutine[Any, Any, Result],
    undo: Callable[[Result], object] | None = None,
) -> Result:
    """Await a call for at most `seconds`; after a timeout, use no older connection of this source again."""
    try:
        return await run_within(seconds, work, undo)
    except TimeoutError:
        await source.renew()
        raise


async def run_within(
    seconds: float, work: Coroutine[Any, Any, Result], undo: Callable[[Result], object] | None = None
) -> Result:
    """Await `work`; if it takes longer, cancel it and raise TimeoutError.

    If the caller is cancelled and `work` returns a result nevertheless, the result is passed to `undo`.
    """
    task = asyncio.ensure_future(work)
    is_late = False
    try:
        await asyncio.wait({task}, timeout=seconds)
        while not task.done():
            is_late = True
            # Once may not be enough: the driver then sends the server a cancel request, which may hang too.
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_AGAIN_S)
    except asyncio.CancelledError:
        task.add_done_callback(_read_exception)
        task.cancel()
        await asyncio.wait({task}, timeout=CLEAN_UP_S)
        task.cancel()
        if undo is not None and task.done() and not task.cancelled() and task.exception() is None:
            undo(task.result())
        raise
    if task.cancelled() or (is_late and task.exception() is not None):
        # If the driver is cancelled while it sends, it may raise any error.
        raise TimeoutError(f"no answer from the database within {seconds:g} s")
    return task.result()


async def close_quietly(closing: Coroutine[Any, Any, object]) -> None:
    """Close a client; ignore errors and connections that do not close in time."""
    with contextlib.suppress(Exception):
        await run_within(CLOSE_S, closing)


async def cancel_leftover_tasks() -> None:
    """Cancel the tasks that calls on dead connections have left on this loop, which is about to end."""
    leftover = asyncio.all_tasks() - {asyncio.current_task()}
    for task in leftover:
        task.add_done_callback(_read_exception)
        task.cancel()
    if leftover:
        await asyncio.wait(leftover, timeout=CANCEL_AGAIN_S)


def _read_exception(task: "asyncio.Task[Any]") -> None:
    """Read the exception of a task that is not awaited, or asyncio would log it."""
    if not task.cancelled():
        task.exception()
