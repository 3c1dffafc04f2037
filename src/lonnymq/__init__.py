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
from lonnymq.client.aio.lent import AsyncLentConnection
from lonnymq.client.settings import ClientSettings
from lonnymq.client.sync import Channel, Crons, DeadLetters, History, Message, Queue
from lonnymq.client.sync.lent import LentConnection
from lonnymq.errors import (
    Busy,
    ChannelCollision,
    ConnectionLost,
    DecodeError,
    HistoryDropped,
    HistoryUnknown,
    InvalidArgument,
    LonnyError,
    NotPermitted,
    PublicationIncomplete,
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
    WrongIsolationLevel,
)
from lonnymq.model import (
    Batch,
    BuryOutcome,
    CancelOutcome,
    CatchUp,
    ChannelDeleteOutcome,
    ChannelPolicy,
    ChannelStatus,
    CompleteOutcome,
    Created,
    CreateOutcome,
    Cron,
    CronDeleteOutcome,
    CronSetOutcome,
    CronStatus,
    CronTickOutcome,
    DeadLetter,
    DeferOutcome,
    DequeueOutcome,
    DueCron,
    DueCrons,
    Explanation,
    GiveBackOutcome,
    HeartbeatOutcome,
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
from lonnymq.schema import SchemaState, SchemaStatus

if TYPE_CHECKING:
    from lonnymq.embedded import EmbeddedServer, embedded
    from lonnymq.tasks import App, PreparedTask, Task, tick_of
    from lonnymq.worker import (
        Bury,
        Defer,
        ExitCode,
        Handler,
        Middleware,
        Retry,
        Worker,
        WorkerSettings,
        current_message,
        supervise,
    )

__version__ = "0.1.0"

__all__ = [
    "JSON",
    "App",
    "AsyncChannel",
    "AsyncCrons",
    "AsyncDeadLetters",
    "AsyncHistory",
    "AsyncLentConnection",
    "AsyncMessage",
    "AsyncQueue",
    "Batch",
    "Bury",
    "BuryOutcome",
    "Busy",
    "CancelOutcome",
    "CatchUp",
    "Channel",
    "ChannelCollision",
    "ChannelDeleteOutcome",
    "ChannelPolicy",
    "ChannelStatus",
    "ClientSettings",
    "Codec",
    "CompleteOutcome",
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
    "DeferOutcome",
    "DequeueOutcome",
    "DueCron",
    "DueCrons",
    "EmbeddedServer",
    "ExitCode",
    "Explanation",
    "GiveBackOutcome",
    "Handler",
    "HeartbeatOutcome",
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
    "LentConnection",
    "LiveMessage",
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
    "Ticks",
    "TransactionAborted",
    "Worker",
    "WorkerSettings",
    "WrongIsolationLevel",
    "current_message",
    "embedded",
    "supervise",
    "tick_of",
]

# Producers need none of these.
WORKER = frozenset(
    {
        "Bury",
        "Defer",
        "ExitCode",
        "Handler",
        "Middleware",
        "Retry",
        "Worker",
        "WorkerSettings",
        "current_message",
        "supervise",
    }
)


def __getattr__(name: str) -> Any:
    # The embedded server is for the first run and for tests: whoever does not ask for it does not load it.
    if name == "embedded":
        return importlib.import_module("lonnymq.embedded")
    if name == "EmbeddedServer":
        return importlib.import_module("lonnymq.embedded").EmbeddedServer
    if name in ("App", "PreparedTask", "Task", "tick_of"):
        return getattr(importlib.import_module("lonnymq.tasks"), name)
    if name in WORKER:
        return getattr(importlib.import_module("lonnymq.worker"), name)
    raise AttributeError(f"module 'lonnymq' has no attribute {name!r}")
