"""What a worker calls for a message of a task: its function, with the arguments in the message."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lonnymq.calls.result import encode_result, is_wanted
from lonnymq.client.attempt_state import AttemptState, NextStep
from lonnymq.errors import DecodeError, InvalidArgument
from lonnymq.model import MessageReport
from lonnymq.tasks.arguments import Arguments
from lonnymq.tasks.gathering import buried_if_too_large, gathered_arguments, is_callback
from lonnymq.tasks.returned import ReturnValue
from lonnymq.tasks.steps import next_step, require_steps
from lonnymq.worker.handler import Bury
from lonnymq.worker.thread_pool import awaitable_error

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.client.sync import Message

# The arguments of a larger content are converted in a thread. On the loop, that would hold up the heartbeats
# of all other messages. Decoding JSON in a thread would not help, because Python's decoder keeps the GIL.
MAX_BYTES_ON_LOOP = 100_000


def attempt_call(
    function: Callable[..., Any], arguments: Arguments, returned: ReturnValue
) -> Callable[..., object]:
    """Return what a worker calls with each message: asynchronous if the function is, else for a thread."""
    return _AttemptCall(function, arguments, returned).create()


class _AttemptCall:
    def __init__(self, function: Callable[..., Any], arguments: Arguments, returned: ReturnValue) -> None:
        self._function = function
        self._arguments = arguments
        self._returned = returned

    def create(self) -> Callable[..., object]:
        function = self._function

        if inspect.iscoroutinefunction(function):

            async def call(message: "AsyncMessage") -> None:
                reports = None
                if is_callback(message):
                    with buried_if_too_large():
                        reports = await message.queue.group_results(message)
                if reports is None and len(message.content) <= MAX_BYTES_ON_LOOP:
                    bound = self._bind(message)
                else:
                    bound = await asyncio.to_thread(self._bind, message, reports)
                self._hand_on(message, await function(*bound.args, **bound.kwargs))

            return call

        def call_in_thread(message: "Message") -> object:
            reports = None
            if is_callback(message):
                with buried_if_too_large():
                    reports = message.queue.group_results(message)
            bound = self._bind(message, reports)
            returned = function(*bound.args, **bound.kwargs)
            if not inspect.isawaitable(returned):
                self._hand_on(message, returned)
                return None

            # An async function inside a decorator returns a coroutine, which the worker awaits.
            async def wait() -> None:
                self._hand_on(message, await returned)

            return wait()

        return call_in_thread

    def _hand_on(self, message: "AsyncMessage | Message", returned: Any) -> None:
        """Have the worker send the next step, or what the function returned if the producer asked for it."""
        state = message.attempt_state
        if state is None or state.is_acknowledged:
            return
        if (next_step_after := state.next_step_after) is not None:
            # A call of complete() in the function may already have sent it.
            if state.outcome is None:
                state.next_step = next_step_after(returned)
        elif is_wanted(message):
            with _buried_errors("kept"):
                state.result = encode_result(self._returned.to_json(returned), message.queue.codec)

    def _prepare_next_step(self, message: "AsyncMessage | Message") -> None:
        """Have the message go on with its next step when the function has returned, if there is one."""
        if (then := message.payload.get("then")) is None:
            return
        steps = require_steps(then)
        state = message.attempt_state
        if state is None:
            # Nobody but the program itself holds this message.
            state = message.__dict__["attempt_state"] = AttemptState()

        def next_step_after(result: Any) -> NextStep:
            with _buried_errors("passed on"):
                return next_step(message, steps, self._returned, result)

        state.next_step_after = next_step_after

    def _bind(
        self, message: "AsyncMessage | Message", reports: Sequence[MessageReport] | None = None
    ) -> inspect.BoundArguments:
        """Return the arguments; `reports` are those of the group whose callback the message is."""
        try:
            self._prepare_next_step(message)
            if reports is not None:
                return self._arguments.from_json(gathered_arguments(message, reports))
            return self._arguments.from_json(message.payload.get("arguments", {}))
        except (InvalidArgument, DecodeError) as error:
            # A retry would fail again, because the arguments stay the same.
            raise Bury(str(error)) from error
        except StopIteration as error:
            # Raised by the constructor of an argument; a future cannot hold it.
            raise awaitable_error(error) from error


@contextmanager
def _buried_errors(what_failed: str) -> Iterator[None]:
    """Raise Bury: the function has done its work, so a retry would do it again, and fail in the same way."""
    try:
        yield
    except Exception as error:
        raise Bury(f"the task has run, but its result cannot be {what_failed}: {error}") from error
