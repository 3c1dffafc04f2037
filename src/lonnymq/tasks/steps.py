"""The steps of a chain, in the payload of its message: what it goes on with once a task has returned."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lonnymq.calls import argument
from lonnymq.calls.codec import encode_payload
from lonnymq.calls.headers import ON_BURIED, encode_headers
from lonnymq.client.attempt_state import NextStep
from lonnymq.errors import invalid
from lonnymq.tasks.prepared_call import Payload, Step

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage
    from lonnymq.client.sync import Message
    from lonnymq.tasks.returned import ReturnValue

MAX_STEPS = 100


def require_steps(then: Any) -> list[Step]:
    """Return the later steps of a message; any program may have written them."""
    if not isinstance(then, list) or not 1 <= len(then) < MAX_STEPS:
        raise invalid("then", then, f"a list of 1 to {MAX_STEPS - 1} steps")
    for index, step in enumerate(then):
        if not _is_step(step):
            raise invalid(f"then[{index}]", step, 'a step: {"task": name, "arguments": {...}}')
        argument.optional_whole(f"then[{index}]: delay_ms", step.get("delay_ms"), 0, argument.MAX_DELAY_MS)
    return then


def next_step(
    message: "AsyncMessage | Message", steps: Sequence[Step], returned: "ReturnValue", result: Any
) -> NextStep:
    """Return what a message goes on with, in its own channel, after a task has returned this result."""
    first, *others = steps
    arguments = first["arguments"]
    if "takes" in first:
        arguments = {**arguments, first["takes"]: returned.to_json(result)}
    payload: Payload = {"task": first["task"], "arguments": arguments}
    if others:
        payload["then"] = others
    content = encode_payload("payload", payload, message.queue.codec)
    headers = {name: value for name, value in message.headers.items() if name != ON_BURIED}
    if first.get("on_buried") is True:
        headers[ON_BURIED] = message.channel
    is_same = headers == message.headers
    return NextStep(content, first.get("delay_ms"), None if is_same else encode_headers(headers) or "{}")


def _is_step(step: Any) -> bool:
    return (
        isinstance(step, dict)
        and isinstance(step.get("task"), str)
        and isinstance(step.get("arguments"), dict)
        and isinstance(step.get("takes", ""), str)
    )
