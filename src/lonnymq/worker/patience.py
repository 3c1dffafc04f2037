"""Calls that must not hang: a connection may be dead without anybody saying so."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import psycopg

from lonnymq.client.aio.source import AsyncSource
from lonnymq.errors import Busy, ConnectionLost

Result = TypeVar("Result")

# What may pass by itself: a restart, a failover, a cut, a full disk, a lock on a whole table.
PASSING = (
    ConnectionLost,
    Busy,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.InternalError,
    TimeoutError,
    OSError,
)
# How long a cancelled call may clean up, and a dequeue give back what it has leased.
CLEAN_UP_S = 10.0
AGAIN_S = 1.0


class Pauses:
    """Pauses between tries while something does not pass: growing, with jitter, for as long as it takes."""

    def __init__(self, first_s: float = 0.05, most_s: float = 5.0) -> None:
        self._first_s = self._pause_s = first_s
        self._most_s = most_s

    def next_s(self) -> float:
        pause_s, self._pause_s = self._pause_s, min(self._pause_s * 2, self._most_s)
        return pause_s * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._pause_s = self._first_s


async def answered(
    source: AsyncSource,
    seconds: float,
    work: Coroutine[Any, Any, Result],
    undo: Callable[[Result], object] | None = None,
) -> Result:
    """Await a call within so many seconds; without an answer, trust no old connection of this source."""
    try:
        return await within(seconds, work, undo)
    except TimeoutError:
        await source.renew()
        raise


async def within(
    seconds: float, work: Coroutine[Any, Any, Result], undo: Callable[[Result], object] | None = None
) -> Result:
    """Await `work`; if it takes longer, cancel it and raise TimeoutError.

    If the caller is cancelled and there is a result all the same, it goes to `undo`.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        while not task.done():
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
    if task.cancelled():
        raise TimeoutError(f"no answer from the database within {seconds:g} s")
    return task.result()


async def cleared_away() -> None:
    """End what calls on dead connections have left on this loop, which is about to end."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.add_done_callback(_forget)
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=AGAIN_S)


def _forget(task: "asyncio.Task[Any]") -> None:
    """Nobody asks for its result any more: an exception in it is no news."""
    if not task.cancelled():
        task.exception()
