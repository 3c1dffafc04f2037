"""Messages of django.tasks: how a worker recognises and runs them."""

import os
import socket
import traceback
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.utils import timezone

from lonnymq.calls.codec import Codec, encode_payload
from lonnymq.calls.result import encode_result, is_wanted
from lonnymq.errors import DecodeError, InvalidArgument
from lonnymq.texts import truncate
from lonnymq.worker import Bury, Handler

# The key in a payload that has the path of the task, and in a result that has what the task returned.
TASK = "django_task"
OUTCOME = "outcome"


def task_handler(message: Any) -> Handler | None:
    """Return the handler of a message of django.tasks; None for any other message."""
    try:
        payload = message.payload
    except DecodeError:
        return None
    path = payload.get(TASK) if isinstance(payload, dict) else None
    return _handler(path) if isinstance(path, str) else None


@lru_cache(maxsize=1000)
def _handler(path: str) -> Handler:
    return Handler(call=run_task, name=truncate(path, 255))


def run_task(message: Any) -> None:
    """Run the task of a message in this thread, async or not, and have the worker send its result."""
    from lonnymq.django import tasks_api as api
    from lonnymq.django.task_results import known_result

    payload = message.payload
    worker = f"{socket.gethostname()[:48]}:{os.getpid()}"
    now = timezone.now()
    earlier = read_progress(message.state_content, message.queue.codec)
    progress = {
        "started_at": earlier.get("started_at", now.isoformat()),
        "last_attempted_at": now.isoformat(),
        "worker": worker,
    }
    try:
        result = known_result(
            payload,
            str(message.id),
            api.TaskResultStatus.RUNNING,
            started_at=instant(progress["started_at"]),
            last_attempted_at=now,
            worker_ids=[worker] * message.attempt,
        )
        backend = api.task_backends[payload["backend"]]
    except Exception as error:
        # A retry would fail again: there is no such task or backend in this project.
        raise Bury(f"cannot load the task: {type(error).__name__}: {error}") from error
    api.task_started.send(type(backend), task_result=result)
    try:
        context = [api.TaskContext(task_result=result)] if result.task.takes_context else []
        value = api.normalize_json(result.task.call(*context, *result.args, **result.kwargs))
        finished_at = timezone.now().isoformat()
        outcome = {**progress, "value": value, "attempt": message.attempt, "finished_at": finished_at}
        content = encode_result({**payload, OUTCOME: outcome}, message.queue.codec)
    except InvalidArgument as error:
        _finish(api, backend, result, error, message)
        raise Bury(f"the task has run, but its result cannot be kept: {error}") from error
    except (Exception, SystemExit) as error:
        if message.attempt_state is not None:
            message.attempt_state.failure_state = encode_payload("state", progress, message.queue.codec)
        if message.max_attempts is not None and message.attempt >= message.max_attempts:
            _finish(api, backend, result, error, message)
        raise
    if message.attempt_state is not None and is_wanted(message):
        message.attempt_state.result = content
    object.__setattr__(result, "_return_value", value)
    _finish(api, backend, result, None, message)


def _finish(api: Any, backend: Any, result: Any, error: BaseException | None, message: Any) -> None:
    status = api.TaskResultStatus.SUCCESSFUL if error is None else api.TaskResultStatus.FAILED
    if error is not None:
        kind = type(error)
        text = "".join(traceback.format_exception(error))
        path = f"{kind.__module__}.{kind.__qualname__}"
        result.errors.append(api.TaskError(exception_class_path=path, traceback=text))
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", timezone.now())
    api.task_finished.send(type(backend), task_result=result)


def read_progress(state: bytes | None, codec: Codec) -> dict[str, str]:
    """Return what a failed attempt has left in the state of its message."""
    try:
        found = None if state is None else codec.decode(state)
    except Exception:  # noqa: BLE001 - the state of another program, or of another codec
        return {}
    return found if isinstance(found, dict) and "last_attempted_at" in found else {}


def instant(text: str | None) -> datetime | None:
    """Return an instant of a payload, as Django would read it from its database."""
    if text is None:
        return None
    from django.conf import settings

    found: datetime = datetime.fromisoformat(text)
    if timezone.is_aware(found) and not settings.USE_TZ:
        found = timezone.make_naive(found)
    return found
