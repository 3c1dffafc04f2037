"""Frozen values: the arguments and results of operations, and every outcome they can have."""

from lonnymq.model.audit import AuditRecord
from lonnymq.model.channel import (
    ChannelDeleteOutcome,
    ChannelSetOutcome,
    ChannelStatus,
    Explanation,
    Reason,
)
from lonnymq.model.create import Created, CreateOutcome, NewMessage, Published, PublishOutcome
from lonnymq.model.cron import (
    CatchUp,
    Cron,
    CronDeleteOutcome,
    CronSetOutcome,
    CronStatus,
    CronTickOutcome,
    DueCron,
    DueCrons,
    Ticks,
)
from lonnymq.model.dead import DeadGroup, DeadGroups, DeadLetter, PurgeOutcome, RedriveOutcome
from lonnymq.model.history import (
    HistoryBlocker,
    HistoryMode,
    HistoryPartition,
    HistoryPosition,
    HistoryReader,
    HistorySlice,
)
from lonnymq.model.lease import Batch, Claim, Content, Dequeued, DequeueOutcome, Lease, LeasedMessage
from lonnymq.model.live import CancelOutcome, LiveMessage, MessageReport, MessageStatus
from lonnymq.model.page import Page, PageCursor
from lonnymq.model.policy import POLICY_FIELDS, ChannelPolicy, PolicyChanges, PolicyField
from lonnymq.model.queue import (
    Horizon,
    Problem,
    QueueActivity,
    QueuePulse,
    QueueSettings,
    QueueStatus,
    RoleKind,
    TableFigures,
)
from lonnymq.model.tenant import (
    TenantAttempt,
    TenantChannel,
    TenantCreated,
    TenantDeadLetter,
    TenantMessage,
)
from lonnymq.model.worker import RegisterOutcome, Watched

__all__ = [
    "POLICY_FIELDS",
    "AuditRecord",
    "Batch",
    "CancelOutcome",
    "CatchUp",
    "ChannelDeleteOutcome",
    "ChannelPolicy",
    "ChannelSetOutcome",
    "ChannelStatus",
    "Claim",
    "Content",
    "CreateOutcome",
    "Created",
    "Cron",
    "CronDeleteOutcome",
    "CronSetOutcome",
    "CronStatus",
    "CronTickOutcome",
    "DeadGroup",
    "DeadGroups",
    "DeadLetter",
    "DequeueOutcome",
    "Dequeued",
    "DueCron",
    "DueCrons",
    "Explanation",
    "HistoryBlocker",
    "HistoryMode",
    "HistoryPartition",
    "HistoryPosition",
    "HistoryReader",
    "HistorySlice",
    "Horizon",
    "Lease",
    "LeasedMessage",
    "LiveMessage",
    "MessageReport",
    "MessageStatus",
    "NewMessage",
    "Page",
    "PageCursor",
    "PolicyChanges",
    "PolicyField",
    "Problem",
    "PublishOutcome",
    "Published",
    "PurgeOutcome",
    "QueueActivity",
    "QueuePulse",
    "QueueSettings",
    "QueueStatus",
    "Reason",
    "RedriveOutcome",
    "RegisterOutcome",
    "RoleKind",
    "TableFigures",
    "TenantAttempt",
    "TenantChannel",
    "TenantCreated",
    "TenantDeadLetter",
    "TenantMessage",
    "Ticks",
    "Watched",
]
