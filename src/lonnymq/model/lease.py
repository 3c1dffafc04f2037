"""Leases: the reply to a dequeue, and leased messages."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, overload

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Item = TypeVar("Item")
Leased = TypeVar("Leased", bound="LeasedMessage")


class DequeueOutcome(StrEnum):
    """EMPTY: no message is due. BUSY: others hold what is due, ask again soon."""

    LEASED = "leased"
    EMPTY = "empty"
    BUSY = "busy"


class Lease(Protocol):
    """What an acknowledgement needs of a message: its id, and the token that proves the lease."""

    @property
    def id(self) -> int: ...
    @property
    def token(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class LeasedMessage:
    """One attempt at a message. `token` is the fence; `dequeue_at` is in ms, and negative for a priority.

    `suspicion` is how often its attempts were lost together with their workers; from 2 on, run it alone.
    """

    id: int
    channel: str
    token: int
    attempt: int
    max_attempts: int | None
    suspicion: int
    dequeue_at: int
    created_ms: int
    leased_us: int
    unlock_us: int
    key: str | None
    content: bytes
    state_content: bytes | None
    headers_json: str | None = None

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers that the producer gave the message; empty if there are none."""
        return {} if self.headers_json is None else json.loads(self.headers_json)

    @property
    def uid(self) -> str:
        """An id that is not issued twice, unlike `id` not even after a failover that lost transactions.

        It is the same for all attempts of a message, and after a redrive.
        """
        return f"{self.created_ms}-{self.id}"

    @property
    def created_at(self) -> datetime:
        return EPOCH + timedelta(milliseconds=self.created_ms)

    @property
    def leased_at(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.leased_us)

    @property
    def unlock_at(self) -> datetime:
        """When the lease ends unless a heartbeat extends it."""
        return EPOCH + timedelta(microseconds=self.unlock_us)


def construct(kind: type[Leased], values: Sequence[Any], more: Mapping[str, Any]) -> Leased:
    """Return a message by the values of its fields, in their order, and by `more` fields of its kind.

    The constructor, which sets the fields of a frozen value one by one, would take five times as long.
    """
    message = object.__new__(kind)
    fields = message.__dict__
    (
        fields["id"],
        fields["channel"],
        fields["token"],
        fields["attempt"],
        fields["max_attempts"],
        fields["suspicion"],
        fields["dequeue_at"],
        fields["created_ms"],
        fields["leased_us"],
        fields["unlock_us"],
        fields["key"],
        fields["content"],
        fields["state_content"],
        fields["headers_json"],
    ) = values
    fields.update(more)
    return message


@dataclass(frozen=True)
class Content:
    """The fields that a reply leaves out if it would become too large."""

    key: str | None
    content: bytes
    state_content: bytes | None
    headers_json: str | None


def set_content(message: LeasedMessage, content: Content) -> None:
    """Set the content of a message in place. Only for messages that no caller has seen yet."""
    message.__dict__.update(vars(content))


@dataclass(frozen=True)
class Dequeued(Generic[Leased]):
    """The reply to one dequeue. `unread` are the ids, with sizes, of messages whose content it leaves out."""

    outcome: DequeueOutcome
    wait_ms: int
    leases: tuple[Leased, ...] = ()
    unread: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch(Sequence[Item], Generic[Item]):
    """The messages of one dequeue. If there are none, ask again after `wait_ms` at the latest."""

    messages: tuple[Item, ...]
    outcome: DequeueOutcome
    wait_ms: int = 0

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        return self.messages[index]

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.messages)


@dataclass(frozen=True)
class Claim:
    """Messages leased together. If there are none, `id` is None and `wait_ms` says when to ask again."""

    id: str | None
    messages: int
    wait_ms: int
