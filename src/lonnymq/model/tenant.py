"""What a tenant sees of its channels. Messages have a uuid, because ids count those of all tenants."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lonnymq.model.channel import Reason
from lonnymq.model.create import CreateOutcome
from lonnymq.model.live import MessageStatus
from lonnymq.model.policy import PolicySource


@dataclass(frozen=True)
class TenantCreated:
    """The result of creating a message. `uuid` is the live message's for a duplicate."""

    outcome: CreateOutcome
    uuid: UUID | None


@dataclass(frozen=True, kw_only=True)
class TenantChannel:
    """The state of a tenant's channel; `head_*` is its next message, `reason` why that message waits."""

    channel: str
    reason: Reason
    waiting: int
    leased: int
    head_uuid: UUID | None
    head_dequeue_at: int | None
    head_created_at: datetime | None
    next_release_at: datetime | None
    last_release_at: datetime | None
    max_concurrency: int | None
    release_interval_ms: int | None
    max_size: int | None
    policy_sources: Mapping[str, PolicySource]


@dataclass(frozen=True, kw_only=True)
class TenantMessage:
    """A live message of a tenant. A preview has only the beginning of the content."""

    uuid: UUID
    channel: str
    key: str | None
    status: MessageStatus
    dequeue_at: int
    created_at: datetime
    attempts: int
    max_attempts: int | None
    error: str | None
    leased_at: datetime | None
    content_bytes: int
    content: bytes


@dataclass(frozen=True, kw_only=True)
class TenantDeadLetter:
    uuid: UUID
    channel: str
    key: str | None
    attempts: int
    error: str | None
    created_at: datetime
    buried_at: datetime
    content: bytes


@dataclass(frozen=True, kw_only=True)
class TenantAttempt:
    """A finished attempt at a message of a tenant, from history; `dequeue_at` is in milliseconds."""

    uuid: UUID
    channel: str
    outcome: str
    attempt: int
    created_at: datetime
    dequeue_at: int
    leased_at: datetime | None
    ended_at: datetime
    error: str | None
    content_bytes: int | None
