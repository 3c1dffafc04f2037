"""Results of django.tasks, from what the queue knows about a message."""

import re
from typing import Any

from django.utils.module_loading import import_string

from lonnymq.django.task_messages import OUTCOME, TASK, instant
from lonnymq.django.tasks_api import Task, TaskError, TaskResult, TaskResultStatus
from lonnymq.model import MessageReport, MessageStatus

STATUSES = {
    MessageStatus.WAITING: TaskResultStatus.READY,
    MessageStatus.SCHEDULED: TaskResultStatus.READY,
    MessageStatus.LEASED: TaskResultStatus.RUNNING,
    MessageStatus.COMPLETED: TaskResultStatus.SUCCESSFUL,
    MessageStatus.BURIED: TaskResultStatus.FAILED,
}
# The line of a traceback that names the exception; what follows may be lines of its message.
EXCEPTION = re.compile(r"^(?: .*\n)+([A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)


def new_result(task: Any, id_: str, status: Any = TaskResultStatus.READY, **known: Any) -> Any:
    """Return a result of a task, with `known` fields."""
    values = {
        "backend": task.backend,
        "args": [],
        "kwargs": {},
        "enqueued_at": None,
        "started_at": None,
        "finished_at": None,
        "last_attempted_at": None,
        "errors": [],
        "worker_ids": [],
    }
    return TaskResult(task=task, id=id_, status=status, **{**values, **known})


def known_result(payload: dict[str, Any], id_: str, status: Any, **known: Any) -> Any:
    """Return a result for the payload of a message."""
    task = import_string(payload[TASK])
    if not isinstance(task, Task):
        raise TypeError(f"{payload[TASK]!r} is not a task")
    task = task.using(
        queue_name=payload["queue_name"], backend=payload["backend"], priority=payload["priority"]
    )
    fields = {name: payload[name] for name in ("args", "kwargs")}
    return new_result(task, id_, status, enqueued_at=instant(payload["enqueued_at"]), **fields, **known)


def reported_result(report: MessageReport, found: dict[str, Any], progress: dict[str, str]) -> Any:
    """Return the result for a report; `found` is the payload, or what was kept of a completed message.

    `progress` is what failed attempts have left.
    """
    at = None if report.at is None else instant(report.at.isoformat())
    outcome = found.get(OUTCOME)
    known = {name: instant(progress.get(name)) for name in ("started_at", "last_attempted_at")}
    if outcome is not None:
        known = {name: instant(outcome[name]) for name in (*known, "finished_at")}
    elif report.status is MessageStatus.BURIED:
        known["finished_at"] = at
    elif report.status is MessageStatus.LEASED:
        known["started_at"], known["last_attempted_at"] = known["started_at"] or at, at
    attempts = (outcome["attempt"] if outcome else report.attempt) or 0
    worker = (outcome["worker"] if outcome else report.worker or progress.get("worker")) or "unknown"
    # The queue knows the latest worker and the latest error only.
    errors = [_error(report.error)] if report.error else []
    known_lists = {"worker_ids": [worker] * attempts, "errors": errors}
    result = known_result(found, str(report.id), STATUSES[report.status], **known, **known_lists)
    if outcome is not None:
        object.__setattr__(result, "_return_value", outcome["value"])
    return result


def _error(text: str) -> Any:
    named = EXCEPTION.findall(text)
    # Without a traceback, for example after the loss of its worker.
    path = named[-1] if named else "lonnymq.errors.MessageBuried"
    path = path if "." in path else f"builtins.{path}"
    # As traceback.format_exception() ends it.
    return TaskError(exception_class_path=path, traceback=f"{text}\n")
