"""The worker: it leases messages, has handlers work them, and says how each attempt ended."""

from lonnymq.worker.current import current_async_message, current_message
from lonnymq.worker.handler import Bury, Defer, Handler
from lonnymq.worker.pipeline import Middleware
from lonnymq.worker.processes import supervise
from lonnymq.worker.retry import Retry
from lonnymq.worker.settings import ExitCode, WorkerSettings
from lonnymq.worker.worker import Worker

__all__ = [
    "Bury",
    "Defer",
    "ExitCode",
    "Handler",
    "Middleware",
    "Retry",
    "Worker",
    "WorkerSettings",
    "current_async_message",
    "current_message",
    "supervise",
]
