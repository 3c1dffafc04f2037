"""The blocking version of aio/cancellation.py, written by hand: a blocking call cannot be cancelled."""

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def finish_or_undo(work: Result, undo: Callable[[Result], object]) -> Result:
    """Return the result of `work`, which has finished."""
    return work
