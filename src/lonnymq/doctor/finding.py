"""Findings of the doctor, and what they are based on."""

from dataclasses import dataclass
from enum import StrEnum

from lonnymq.model import HistoryPartition, Problem, QueuePulse, WorkerStatus

# Of many findings of the same kind, only this many are listed.
MAX_LISTED = 5


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """What is wrong or right, and what to do about it."""

    level: Level
    subject: str
    detail: str
    advice: str = ""


@dataclass(frozen=True)
class QueueFacts:
    """What the queue reports about itself; None where the role may not ask."""

    pulse: QueuePulse | None
    partitions: list[HistoryPartition] | None
    workers: list[WorkerStatus] | None
    problems: list[Problem] | None
