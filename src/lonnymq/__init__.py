"""LonnyMQ: a multi-tenant message queue that lives in the PostgreSQL you already run."""

import importlib
from typing import TYPE_CHECKING, Any

from lonnymq.calls.codec import JSON, Codec, JsonCodec
from lonnymq.client.aio import (
    AsyncChannel,
    AsyncCrons,
    AsyncDeadLetters,
    AsyncHistory,
    AsyncMessage,
    AsyncQueue,
)
from lonnymq.client.enqueueing import EnqueueMiddleware
from lonnymq.client.sync import Channel, Crons, DeadLetters, History, Message, Queue
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.connections.settings import ClientSettings
from lonnymq.connections.sync.borrowed import BorrowedConnection
from lonnymq.errors import (
    Busy,
    ChannelCollision,
    ChannelFull,
    ConnectionLost,
    DecodeError,
    HistoryDropped,
    HistoryUnknown,
    InvalidArgument,
    LoginRefused,
    LonnyError,
    NotPermitted,
    PublicationIncomplete,
    ReadOnlyTransaction,
    SchemaError,
    SchemaMissing,
    SchemaOccupied,
    SchemaTooNew,
    SchemaTooOld,
    SchemaUnsafe,
    ServerTooOld,
    SessionNotKept,
    StreamRestarted,
    TransactionAborted,
    WrongClient,
    WrongIsolationLevel,
    is_permanent,
)
from lonnymq.model import (
    Batch,
    CancelOutcome,
    CatchUp,
    ChannelDeleteOutcome,
    ChannelPolicy,
    ChannelStatus,
    Created,
    CreateOutcome,
    Cron,
    CronDeleteOutcome,
    CronSetOutcome,
    CronStatus,
    CronTickOutcome,
    DeadLetter,
    DequeueOutcome,
    DueCron,
    DueCrons,
    Explanation,
    HistoryBlocker,
    HistoryMode,
    HistoryPartition,
    HistoryReader,
    Lease,
    LeasedMessage,
    LiveMessage,
    MessageStatus,
    NewMessage,
    Problem,
    Published,
    PublishOutcome,
    PurgeOutcome,
    QueueActivity,
    QueueSettings,
    QueueStatus,
    Reason,
    RedriveOutcome,
    RoleKind,
    Ticks,
)
from lonnymq.model import acknowledge as _acknowledge
from lonnymq.model.acknowledge import *  # noqa: F403 - one outcome for each acknowledgement
from lonnymq.schema import SchemaState, SchemaStatus

if TYPE_CHECKING:
    from lonnymq.embedded import EmbeddedServer, embedded
    from lonnymq.tasks import App, PreparedTask, Task, TaskRegistry, tick_of
    from lonnymq.worker import (
        Bury,
        Defer,
        ExitCode,
        Handler,
        Middleware,
        Retry,
        TimedOut,
        Worker,
        WorkerSettings,
        current_async_message,
        current_message,
        supervise,
    )

__version__ = "0.1.0"

__all__ = [
    "JSON",
    "App",
    "AsyncBorrowedConnection",
    "AsyncChannel",
    "AsyncCrons",
    "AsyncDeadLetters",
    "AsyncHistory",
    "AsyncMessage",
    "AsyncQueue",
    "Batch",
    "BorrowedConnection",
    "Bury",
    "Busy",
    "CancelOutcome",
    "CatchUp",
    "Channel",
    "ChannelCollision",
    "ChannelDeleteOutcome",
    "ChannelFull",
    "ChannelPolicy",
    "ChannelStatus",
    "ClientSettings",
    "Codec",
    "ConnectionLost",
    "CreateOutcome",
    "Created",
    "Cron",
    "CronDeleteOutcome",
    "CronSetOutcome",
    "CronStatus",
    "CronTickOutcome",
    "Crons",
    "DeadLetter",
    "DeadLetters",
    "DecodeError",
    "Defer",
    "DequeueOutcome",
    "DueCron",
    "DueCrons",
    "EmbeddedServer",
    "EnqueueMiddleware",
    "ExitCode",
    "Explanation",
    "Handler",
    "History",
    "HistoryBlocker",
    "HistoryDropped",
    "HistoryMode",
    "HistoryPartition",
    "HistoryReader",
    "HistoryUnknown",
    "InvalidArgument",
    "JsonCodec",
    "Lease",
    "LeasedMessage",
    "LiveMessage",
    "LoginRefused",
    "LonnyError",
    "Message",
    "MessageStatus",
    "Middleware",
    "NewMessage",
    "NotPermitted",
    "PreparedTask",
    "Problem",
    "PublicationIncomplete",
    "PublishOutcome",
    "Published",
    "PurgeOutcome",
    "Queue",
    "QueueActivity",
    "QueueSettings",
    "QueueStatus",
    "ReadOnlyTransaction",
    "Reason",
    "RedriveOutcome",
    "Retry",
    "RoleKind",
    "SchemaError",
    "SchemaMissing",
    "SchemaOccupied",
    "SchemaState",
    "SchemaStatus",
    "SchemaTooNew",
    "SchemaTooOld",
    "SchemaUnsafe",
    "ServerTooOld",
    "SessionNotKept",
    "StreamRestarted",
    "Task",
    "TaskRegistry",
    "Ticks",
    "TimedOut",
    "TransactionAborted",
    "Worker",
    "WorkerSettings",
    "WrongClient",
    "WrongIsolationLevel",
    "current_async_message",
    "current_message",
    "embedded",
    "is_permanent",
    "supervise",
    "tick_of",
]
__all__ += _acknowledge.__all__

# Loaded only when they are used, because producers need none of them.
WORKER_NAMES = frozenset(
    {
        "Bury",
        "Defer",
        "ExitCode",
        "Handler",
        "Middleware",
        "Retry",
        "TimedOut",
        "Worker",
        "WorkerSettings",
        "current_async_message",
        "current_message",
        "supervise",
    }
)


def __getattr__(name: str) -> Any:
    # The embedded server is for the first run and for tests, and is loaded only when it is used.
    if name == "embedded":
        return importlib.import_module("lonnymq.embedded")
    if name == "EmbeddedServer":
        return importlib.import_module("lonnymq.embedded").EmbeddedServer
    if name in ("App", "PreparedTask", "Task", "TaskRegistry", "tick_of"):
        return getattr(importlib.import_module("lonnymq.tasks"), name)
    if name in WORKER_NAMES:
        return getattr(importlib.import_module("lonnymq.worker"), name)
    raise AttributeError(f"module 'lonnymq' has no attribute {name!r}")
