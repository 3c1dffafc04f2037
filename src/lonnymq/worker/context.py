"""Context variables of their own for coroutines that share a task."""

import types
from collections.abc import Coroutine, Generator
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")
Value = TypeVar("Value")


@types.coroutine
def run_in_context(
    coroutine: Coroutine[Any, Any, Result], variable: ContextVar[Value], value: Value
) -> Generator[Any, Any, Result]:
    """Await a coroutine in a copy of the present context, as a task of its own would, at less cost.

    Only there the variable has this value: a slot between two messages keeps nothing of the last one.
    """
    run = copy_context().run
    run(variable.set, value)
    step: Any = coroutine.send
    sent: Any = None
    while True:
        try:
            awaited = run(step, sent)
        except StopIteration as end:
            result: Result = end.value
            return result
        except GeneratorExit as error:
            if isinstance(sent, GeneratorExit):
                raise
            # Nobody closes this coroutine: it is an error as any other.
            raise RuntimeError("the handler raised GeneratorExit") from error
        try:
            sent = yield awaited
            step = coroutine.send
        except BaseException as error:  # noqa: BLE001 - all of them go to the coroutine
            step, sent = coroutine.throw, error
