"""Tasks are functions whose calls are messages; crons enqueue them on a schedule."""

from lonnymq.cron import schedule
from lonnymq.tasks.app import App
from lonnymq.tasks.chains import Chain, chain
from lonnymq.tasks.enqueued import AsyncEnqueued, Enqueued
from lonnymq.tasks.groups import Group, group
from lonnymq.tasks.registry import TaskRegistry
from lonnymq.tasks.task import PreparedTask, Task
from lonnymq.tasks.ticker import tick_of

__all__ = [
    "App",
    "AsyncEnqueued",
    "Chain",
    "Enqueued",
    "Group",
    "PreparedTask",
    "Task",
    "TaskRegistry",
    "chain",
    "group",
    "schedule",
    "tick_of",
]
