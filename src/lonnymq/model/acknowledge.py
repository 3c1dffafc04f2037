"""Acknowledgements: the actions that end an attempt, and the outcomes of each."""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Generic, TypeVar

# What lonnymq exports.
__all__ = [
    "AdvanceOutcome",
    "BuryOutcome",
    "CompleteOutcome",
    "DeferOutcome",
    "GiveBackOutcome",
    "HeartbeatOutcome",
]

Outcome = TypeVar("Outcome", bound=StrEnum)


class CompleteOutcome(StrEnum):
    COMPLETED = "completed"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class AdvanceOutcome(StrEnum):
    ADVANCED = "advanced"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class DeferOutcome(StrEnum):
    DEFERRED = "deferred"
    BURIED = "buried"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class BuryOutcome(StrEnum):
    BURIED = "buried"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class GiveBackOutcome(StrEnum):
    GIVEN_BACK = "given_back"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class HeartbeatOutcome(StrEnum):
    EXTENDED = "extended"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class Effect(Enum):
    """What an action does to the message."""

    END = "it is deleted"
    NEXT = "it waits again, as a new message: its next step"
    RETRY = "it waits again, with one attempt spent"
    RETURN = "it waits again, as if it had not been leased"
    BURY = "it becomes a dead letter"


@dataclass(frozen=True, eq=False)
class Action(Generic[Outcome]):
    """One way to end an attempt: `message_<name>` in SQL, and the method `<name>()` of queue and message."""

    name: str
    # The outcome if it took effect; the other members of the enumeration say why it did not.
    done: Outcome
    effect: Effect
    # The values per message, in the order of the SQL function (see calls/acknowledge.py).
    details: tuple[str, ...] = ()


COMPLETE = Action("complete", CompleteOutcome.COMPLETED, Effect.END, ("result",))
ADVANCE = Action("advance", AdvanceOutcome.ADVANCED, Effect.NEXT, ("content", "delay_ms", "headers"))
GIVE_BACK = Action("give_back", GiveBackOutcome.GIVEN_BACK, Effect.RETURN)
DEFER = Action("defer", DeferOutcome.DEFERRED, Effect.RETRY, ("delay_ms", "state", "error"))
BURY = Action("bury", BuryOutcome.BURIED, Effect.BURY, ("error",))
ACTIONS: tuple[Action[Any], ...] = (COMPLETE, ADVANCE, GIVE_BACK, DEFER, BURY)
