"""Time limits of calls: a connection may be dead without anybody saying so."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lonnymq.connections.aio.source import AsyncSource

Result = TypeVar("Result")

# A link that carries less than this is taken for dead.
SLOWEST_BYTES_PER_S = 100_000
# How long a cancelled call may clean up, and a dequeue give back what it has leased.
CLEAN_UP_S = 10.0
AGAIN_S = 1.0
# How long a connection may take to be closed.
CLOSE_S = 3.0


def timeout_for(timeout_s: float, size: int) -> float:
    """Return how long a call may take that carries this many bytes."""
    return timeout_s + size / SLOWEST_BYTES_PER_S


async def call_within(
    source: AsyncSource,
    seconds: float,
    work: Coroutine[Any, Any, Result],
    undo: Callable[[Result], object] | None = None,
) -> Result:
    """Await a call for at most `seconds`; after a timeout, trust no older connection of this source."""
    try:
        return await run_within(seconds, work, undo)
    except TimeoutError:
        await source.renew()
        raise


async def run_within(
    seconds: float, work: Coroutine[Any, Any, Result], undo: Callable[[Result], object] | None = None
) -> Result:
    """Await `work`; if it takes longer, cancel it and raise TimeoutError.

    If the caller is cancelled and there is a result all the same, it goes to `undo`.
    """
    task = asyncio.ensure_future(work)
    is_late = False
    try:
        await asyncio.wait({task}, timeout=seconds)
        while not task.done():
            is_late = True
            # Once may not be enough: the driver then asks the server to stop, which may hang as well.
            task.cancel()
            await asyncio.wait({task}, timeout=AGAIN_S)
    except asyncio.CancelledError:
        task.add_done_callback(_forget)
        task.cancel()
        await asyncio.wait({task}, timeout=CLEAN_UP_S)
        task.cancel()
        if undo is not None and task.done() and not task.cancelled() and task.exception() is None:
            undo(task.result())
        raise
    if task.cancelled() or (is_late and task.exception() is not None):
        # Cancelled while it still sends, the driver raises whatever it stumbles over.
        raise TimeoutError(f"no answer from the database within {seconds:g} s")
    return task.result()


async def close_quietly(closing: Coroutine[Any, Any, object]) -> None:
    """Close a client, as far as its connections still let themselves be closed."""
    with contextlib.suppress(Exception):
        await run_within(CLOSE_S, closing)


async def cancel_leftover_tasks() -> None:
    """Cancel the tasks that calls on dead connections have left on this loop, which is about to end."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.add_done_callback(_forget)
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=AGAIN_S)


def _forget(task: "asyncio.Task[Any]") -> None:
    """Read the exception of a task whose result nobody awaits, or asyncio would log it."""
    if not task.cancelled():
        task.exception()
