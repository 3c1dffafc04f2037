"""What a finding is."""

from dataclasses import dataclass
from enum import StrEnum

from lonnymq import HistoryPartition, Problem, QueueStatus

# Of many findings of a kind, so many are told.
MOST_NAMED = 5


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """What was found, and what to do about it."""

    level: Level
    subject: str
    detail: str
    advice: str = ""


@dataclass(frozen=True)
class Vitals:
    """What the queue itself says; None where the role may not ask."""

    status: QueueStatus | None
    partitions: list[HistoryPartition] | None
    problems: list[Problem] | None
