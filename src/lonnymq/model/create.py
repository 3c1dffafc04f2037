"""Creation of messages: the arguments and the results."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class CreateOutcome(StrEnum):
    CREATED = "created"
    DUPLICATE = "duplicate"
    DROPPED = "dropped"


class PublishOutcome(StrEnum):
    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already_published"


@dataclass(frozen=True, kw_only=True)
class NewMessage:
    """A message to create, with at most one of `at`, `delay` (or seconds) and `priority` (highest first).

    `headers` are texts that travel with the payload: at most 8192 bytes as JSON. `keep_result` is how long
    the result is kept after the message has ended, at most 7 days.
    """

    channel: str
    payload: Any
    at: datetime | None = None
    delay: timedelta | float | None = None
    priority: int | None = None
    key: str | None = None
    max_attempts: int | None = None
    headers: Mapping[str, str] | None = None
    keep_result: timedelta | float | None = None


@dataclass(frozen=True)
class Created:
    """The result of creating a message. `id` is that of the live message for a duplicate, None if dropped."""

    outcome: CreateOutcome
    id: int | None


@dataclass(frozen=True)
class CreatedGroup(Created):
    """The result of creating a group: its callback's, and the ids of its members if it was created."""

    member_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Published:
    """The result of a bulk load; `duplicates` were not created, because a live message has their key."""

    outcome: PublishOutcome
    created: int
    duplicates: int
    publication: str
