"""The record of what operators did."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class AuditRecord:
    """One action. `role` is the database role; `actor` is whoever acted through it, as the client said."""

    id: int
    acted_at: datetime
    actor: str
    role: str
    verb: str
    """What was done, as the function that did it: "channel_pause"."""
    subject: str | None
    """The channel, message, cron or worker; None for several, or none."""
    arguments: Mapping[str, Any]
    outcomes: Mapping[str, int]
    """How many items had which outcome."""
