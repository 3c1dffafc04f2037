"""A backend for django.tasks (Django 6) and for its backport, the package django-tasks.

TASKS = {"default": {"BACKEND": "lonnymq.django.tasks.LonnyMQBackend"}}
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from lonnymq.calls import argument
from lonnymq.calls.result import keep_header
from lonnymq.django.configuration import get_queue, read_configuration
from lonnymq.django.task_messages import TASK, read_progress
from lonnymq.django.task_results import new_result, reported_result
from lonnymq.django.tasks_api import BaseTaskBackend, InvalidTask, TaskResultDoesNotExist, task_enqueued
from lonnymq.errors import InvalidArgument
from lonnymq.model import DeadLetter, LiveMessage, MessageReport, MessageStatus

OPTIONS = {"KEEP_RESULT", "MAX_ATTEMPTS"}
# Between two calls of get_result(), a message may end.
LOOKS = 3


class LonnyMQBackend(BaseTaskBackend):
    """Tasks are messages: the queue_name of a task is its channel, and by default any name is allowed.

    OPTIONS: KEEP_RESULT, how long the result of a successful task is kept (a timedelta or seconds; default a
    day, None for not at all), and MAX_ATTEMPTS (default 1: a task that has raised an exception has failed).
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        # A channel is a tenant: there is no list of them in the settings.
        super().__init__(alias, {"QUEUES": [], **params})
        try:
            if unknown := sorted(set(self.options) - OPTIONS):
                raise InvalidArgument(f"unknown option {unknown[0]!r}")
            self._keep_result = self.options.get("KEEP_RESULT", timedelta(days=1))
            keep_header(self._keep_result)
            attempts = self.options.get("MAX_ATTEMPTS", 1)
            self._max_attempts = argument.whole("MAX_ATTEMPTS", attempts, 1, argument.MAX_INTEGER)
        except InvalidArgument as error:
            raise ImproperlyConfigured(f"OPTIONS in TASKS[{alias!r}]: {error}") from error

    def validate_task(self, task: Any) -> None:
        """Refuse also what a message cannot express."""
        super().validate_task(task)
        if task.priority < 0:
            raise InvalidTask(
                f"priority must be 0, the lowest, to 100, got {task.priority}: to let other tasks go first,"
                " use run_after or a queue_name of its own"
            )
        if task.priority and task.run_after is not None:
            # A message has one number for both (see sql/tables/message.sql).
            raise InvalidTask("priority and run_after cannot be combined: a task has one of the two")
        try:
            argument.channel(task.queue_name)
        except InvalidArgument as error:
            raise InvalidTask(f"queue_name: {error}") from error

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Create the message, in the current transaction of Django's connection to the queue's database."""
        self.validate_task(task)
        now, at = timezone.now(), task.run_after
        if at is not None and timezone.is_naive(at):
            at = timezone.make_aware(at)
        result = new_result(task, "", args=list(args), kwargs=dict(kwargs), enqueued_at=now)
        payload = {
            TASK: task.module_path,
            "backend": self.alias,
            "queue_name": task.queue_name,
            "priority": task.priority,
            "enqueued_at": now.isoformat(),
            # As the result has normalised them.
            "args": result.args,
            "kwargs": result.kwargs,
        }
        created = get_queue().enqueue(
            task.queue_name,
            payload,
            at=at,
            priority=task.priority or None,
            max_attempts=self._max_attempts,
            keep_result=self._keep_result,
            raise_if_dropped=True,
            connection=read_configuration().connection,
        )
        object.__setattr__(result, "id", str(created.id))
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Return what is known of a task: while it waits, runs, is a dead letter, or its result is kept."""
        connection = read_configuration().connection
        for _ in range(LOOKS):
            try:
                report = get_queue().status_of(int(result_id), connection=connection)
            except (ValueError, InvalidArgument):
                break
            content, state = self._contents(report, connection)
            codec = get_queue().codec
            found = None if content is None else codec.decode(content)
            if isinstance(found, dict) and TASK in found:
                return reported_result(report, found, read_progress(state, codec))
            if found is not None or report.status in (MessageStatus.UNKNOWN, MessageStatus.CANCELLED):
                break
        raise TaskResultDoesNotExist(result_id)

    @staticmethod
    def _contents(report: MessageReport, connection: Any) -> tuple[bytes | None, bytes | None]:
        """Return the content and the state, as far as there are any."""
        queue = get_queue()
        found: LiveMessage | DeadLetter | None
        if report.status.is_live:
            found = queue.show(report.id, connection=connection)
        elif report.status is MessageStatus.BURIED:
            found = queue.dead().show(report.id, connection=connection)
        else:
            return report.result_content, None
        return (None, None) if found is None else (found.content, found.state_content)
