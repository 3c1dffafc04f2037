"""Context variables of their own for coroutines that share a task."""

import types
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")


@types.coroutine
def isolated(coroutine: Coroutine[Any, Any, Result]) -> Generator[Any, Any, Result]:
    """Await a coroutine in a copy of the present context, as a task of its own would, at less cost."""
    run = copy_context().run
    step: Any = coroutine.send
    value: Any = None
    while True:
        try:
            awaited = run(step, value)
        except StopIteration as end:
            result: Result = end.value
            return result
        except GeneratorExit as error:
            if isinstance(value, GeneratorExit):
                raise
            # Nobody closes this coroutine: it is an error as any other.
            raise RuntimeError("the handler raised GeneratorExit") from error
        try:
            value = yield awaited
            step = coroutine.send
        except BaseException as error:  # noqa: BLE001 - all of them go to the coroutine
            step, value = coroutine.throw, error
