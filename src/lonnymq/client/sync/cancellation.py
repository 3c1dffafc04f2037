"""The blocking twin of aio/cancellation.py, by hand: here nobody is cancelled while a call runs."""

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def kept(work: Result, undo: Callable[[Result], object]) -> Result:
    return work
