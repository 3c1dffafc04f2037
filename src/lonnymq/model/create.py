"""It enters: what is to be a message, and what became of that."""

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
    """A message to be; at most one of `at`, `delay` (seconds if a number) and `priority` (higher first)."""

    channel: str
    payload: Any
    at: datetime | None = None
    delay: timedelta | float | None = None
    priority: int | None = None
    key: str | None = None
    max_attempts: int | None = None


@dataclass(frozen=True)
class Created:
    """`id` is the first message's if this is a duplicate, and None if the channel was full."""

    outcome: CreateOutcome
    id: int | None


@dataclass(frozen=True)
class Published:
    """The result of a bulk load; `duplicates` had a key that was live."""

    outcome: PublishOutcome
    created: int
    duplicates: int
    publication: str
