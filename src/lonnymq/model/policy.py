"""The policy of a channel. Type, range, default and meaning of each field are defined here and nowhere else.

Calls, the command line and Spark's schemas read `POLICY_FIELDS`; `tools/policy.py` generates the SQL and the
reference from it.
"""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Literal, TypedDict

NONE: Final = "none"
"""Lifts a limit of a channel, whatever the queue's default policy says."""

LARGEST = {"integer": 2_147_483_647, "bigint": 9_223_372_036_854_775_807}


def _number(
    default: int | None,
    meaning: str,
    *,
    sql_type: Literal["integer", "bigint"] = "integer",
    low: int = 1,
    high: int | None = None,
) -> Any:
    return _field(default, meaning, sql_type, low, LARGEST[sql_type] if high is None else high)


def _flag(meaning: str) -> Any:
    return _field(False, meaning, "boolean", 0, 1)


def _field(default: int | None, meaning: str, sql_type: str, low: int, high: int) -> Any:
    facts = {"default": default, "meaning": meaning, "sql_type": sql_type, "low": low, "high": high}
    return field(default=default, metadata=facts)


@dataclass(frozen=True, kw_only=True)
class ChannelPolicy:
    """The limits of a channel; None means no limit."""

    max_concurrency: int | None = _number(None, "maximum number of messages leased at once")
    release_interval_ms: int | None = _number(
        None, "minimum milliseconds between two releases", sql_type="bigint", high=86_400_000
    )
    release_burst: int = _number(1, "maximum number of releases at once after an idle period", high=10_000)
    weight: int = _number(1, "messages per turn, times the queue's `quantum`", high=1000)
    max_size: int | None = _number(
        None, "maximum number of waiting messages; further ones are dropped", sql_type="bigint", low=0
    )
    max_attempts: int | None = _number(
        None, "attempts before a message is buried, unless the message has its own limit"
    )
    is_paused: bool = _flag("no message is released while this is true")


class DefaultPolicyChanges(TypedDict, total=False):
    """The fields of a queue's default policy that a call changes; None removes a field."""

    max_concurrency: int | None
    release_interval_ms: int | None
    release_burst: int | None
    weight: int | None
    max_size: int | None
    max_attempts: int | None


class PolicyChanges(TypedDict, total=False):
    """The fields of a channel's policy that a call changes.

    None removes the channel's own value, so that the queue's default policy applies; `"none"` lifts a limit.
    """

    max_concurrency: int | Literal["none"] | None
    release_interval_ms: int | Literal["none"] | None
    release_burst: int | None
    weight: int | None
    max_size: int | Literal["none"] | None
    max_attempts: int | Literal["none"] | None
    is_paused: bool | None


class PolicySource(StrEnum):
    """Where the value of a policy field comes from."""

    OWN = "own"  # set for the channel
    LIFTED = "lifted"  # set to no limit for the channel
    DEFAULT = "default"  # the queue's default policy
    UNSET = "unset"  # neither: no limit, or the field's built-in value


@dataclass(frozen=True, kw_only=True)
class PolicyField:
    """One field. A number is between `low` and `high`; durations are in milliseconds."""

    name: str
    sql_type: Literal["integer", "bigint", "boolean"]
    low: int
    high: int
    default: int | None
    meaning: str

    @property
    def is_flag(self) -> bool:
        return self.sql_type == "boolean"

    @property
    def can_be_lifted(self) -> bool:
        """Whether the field is a limit, so that a channel can have none."""
        return self.default is None


POLICY_FIELDS = {one.name: PolicyField(name=one.name, **one.metadata) for one in fields(ChannelPolicy)}

# A queue's default policy has them all, except whether a channel is paused.
DEFAULT_POLICY_FIELDS = {name: one for name, one in POLICY_FIELDS.items() if not one.is_flag}
