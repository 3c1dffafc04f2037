"""The worker: it leases messages, runs handlers, and acknowledges the results."""

from lonnymq.worker.handler import Bury, Defer, Handler
from lonnymq.worker.message_context import current_async_message, current_message
from lonnymq.worker.middleware import Middleware
from lonnymq.worker.retry import Retry
from lonnymq.worker.settings import ExitCode, WorkerSettings
from lonnymq.worker.supervisor import supervise
from lonnymq.worker.verdict import LeaseExpired, TimedOut
from lonnymq.worker.worker import Worker

__all__ = [
    "Bury",
    "Defer",
    "ExitCode",
    "Handler",
    "LeaseExpired",
    "Middleware",
    "Retry",
    "TimedOut",
    "Worker",
    "WorkerSettings",
    "current_async_message",
    "current_message",
    "supervise",
]
