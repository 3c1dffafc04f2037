"""LonnyMQ: a multi-tenant message queue that lives in the PostgreSQL you already run."""

import importlib
from typing import TYPE_CHECKING, Any

from lonnymq.calls.codec import JSON, Codec, JsonCodec
from lonnymq.client.aio import AsyncChannel, AsyncDeadLetters, AsyncHistory, AsyncMessage, AsyncQueue
from lonnymq.client.settings import ClientSettings
from lonnymq.client.sync import Channel, DeadLetters, History, Message, Queue
from lonnymq.errors import (
    Busy,
    ChannelCollision,
    ConnectionLost,
    DecodeError,
    InvalidArgument,
    LonnyError,
    NotPermitted,
    PublicationIncomplete,
    SchemaError,
    SchemaMissing,
    SchemaOccupied,
    SchemaTooNew,
    SchemaTooOld,
    ServerTooOld,
    WrongIsolationLevel,
)
from lonnymq.model import (
    Batch,
    BuryOutcome,
    CancelOutcome,
    ChannelDeleteOutcome,
    ChannelPolicy,
    ChannelStatus,
    CompleteOutcome,
    Created,
    CreateOutcome,
    DeadLetter,
    DeferOutcome,
    DequeueOutcome,
    Explanation,
    GiveBackOutcome,
    HeartbeatOutcome,
    HistoryMode,
    HistoryPartition,
    Lease,
    LeasedMessage,
    LiveMessage,
    MessageStatus,
    NewMessage,
    Problem,
    Published,
    PublishOutcome,
    PurgeOutcome,
    QueueSettings,
    QueueStatus,
    Reason,
    RedriveOutcome,
    RoleKind,
)
from lonnymq.schema import SchemaState, SchemaStatus

if TYPE_CHECKING:
    from lonnymq.embedded import EmbeddedServer, embedded

__version__ = "0.1.0"

__all__ = [
    "JSON",
    "AsyncChannel",
    "AsyncDeadLetters",
    "AsyncHistory",
    "AsyncMessage",
    "AsyncQueue",
    "Batch",
    "BuryOutcome",
    "Busy",
    "CancelOutcome",
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
    "DeadLetter",
    "DeadLetters",
    "DecodeError",
    "DeferOutcome",
    "DequeueOutcome",
    "EmbeddedServer",
    "Explanation",
    "GiveBackOutcome",
    "HeartbeatOutcome",
    "History",
    "HistoryMode",
    "HistoryPartition",
    "InvalidArgument",
    "JsonCodec",
    "Lease",
    "LeasedMessage",
    "LiveMessage",
    "LonnyError",
    "Message",
    "MessageStatus",
    "NewMessage",
    "NotPermitted",
    "Problem",
    "PublicationIncomplete",
    "PublishOutcome",
    "Published",
    "PurgeOutcome",
    "Queue",
    "QueueSettings",
    "QueueStatus",
    "Reason",
    "RedriveOutcome",
    "RoleKind",
    "SchemaError",
    "SchemaMissing",
    "SchemaOccupied",
    "SchemaState",
    "SchemaStatus",
    "SchemaTooNew",
    "SchemaTooOld",
    "ServerTooOld",
    "WrongIsolationLevel",
    "embedded",
]


def __getattr__(name: str) -> Any:
    # The embedded server is for the first run and for tests: whoever does not ask for it does not load it.
    if name == "embedded":
        return importlib.import_module("lonnymq.embedded")
    if name == "EmbeddedServer":
        return importlib.import_module("lonnymq.embedded").EmbeddedServer
    raise AttributeError(f"module 'lonnymq' has no attribute {name!r}")
