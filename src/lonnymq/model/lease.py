"""It is leased: the reply to a dequeue, and what an attempt knows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, Protocol, TypeVar, overload

Item = TypeVar("Item")


class DequeueOutcome(StrEnum):
    """EMPTY: nothing is due. BUSY: others hold what is due, ask again soon."""

    LEASED = "leased"
    EMPTY = "empty"
    BUSY = "busy"


class Lease(Protocol):
    """What an acknowledgement needs of a message: which one, and the proof that it is still ours."""

    @property
    def id(self) -> int: ...
    @property
    def token(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class LeasedMessage:
    """One attempt at a message; `token` is the fence. `dequeue_at` is in ms, negative if prioritised."""

    id: int
    channel: str
    token: int
    attempt: int
    max_attempts: int | None
    dequeue_at: int
    created_at: datetime
    leased_at: datetime
    unlock_at: datetime
    key: str | None
    content: bytes
    state_content: bytes | None


@dataclass(frozen=True)
class Content:
    """What a reply leaves out if it would grow too large."""

    key: str | None
    content: bytes
    state_content: bytes | None


@dataclass(frozen=True)
class Dequeued:
    """The reply to one dequeue; `unread` are ids, with their bytes, whose content was too large for it."""

    outcome: DequeueOutcome
    wait_ms: int
    leases: tuple[LeasedMessage, ...] = ()
    unread: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch(Sequence[Item], Generic[Item]):
    """The messages of one dequeue. If there are none, `wait_ms` is when to ask again at the latest."""

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
    """Messages leased together; `id` is None if there were none, and `wait_ms` says when to ask again."""

    id: str | None
    messages: int
    wait_ms: int
