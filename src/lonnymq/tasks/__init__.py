"""Tasks: functions whose calls are messages; and crons, which enqueue them again and again."""

from lonnymq.cron import schedule
from lonnymq.tasks.app import App
from lonnymq.tasks.cron import tick_of
from lonnymq.tasks.task import PreparedTask, Task

__all__ = ["App", "PreparedTask", "Task", "schedule", "tick_of"]
