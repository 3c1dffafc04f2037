"""Its attempt ends, or goes on: what the queue answers."""

from enum import StrEnum


class CompleteOutcome(StrEnum):
    COMPLETED = "completed"
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
