"""The client. aio/ is written by hand for asyncio; tools/unasync.py generates sync/ from it."""

from lonnymq.client.aio.audit import AsyncAudit, AsyncAuditedAction
from lonnymq.client.aio.channel import AsyncChannel
from lonnymq.client.aio.cron import AsyncCrons
from lonnymq.client.aio.dead import AsyncDeadLetters
from lonnymq.client.aio.history import AsyncHistory
from lonnymq.client.aio.message import AsyncMessage
from lonnymq.client.aio.queue import AsyncQueue
from lonnymq.client.aio.tenant import AsyncTenant

__all__ = [
    "AsyncAudit",
    "AsyncAuditedAction",
    "AsyncChannel",
    "AsyncCrons",
    "AsyncDeadLetters",
    "AsyncHistory",
    "AsyncMessage",
    "AsyncQueue",
    "AsyncTenant",
]
