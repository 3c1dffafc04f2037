"""Finishes or undoes work whose caller was cancelled. sync/cancellation.py is written by hand too."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
TIMEOUT_S = 5.0


async def finish_or_undo(
    work: Coroutine[Any, Any, Result], undo: Callable[[Result], Awaitable[object]]
) -> Result:
    """Run `work`; if the caller is cancelled meanwhile, let it finish, undo it, and then raise."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # A caller that is cancelled twice does not wait: then nobody retrieves the result or the error.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        if not task.cancelled():
            await asyncio.wait({task}, timeout=TIMEOUT_S)
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=TIMEOUT_S)
            elif not task.cancelled() and task.exception() is None:
                await undo(task.result())
        raise
