"""What a report tells: plain values, small whatever the history's size. No Spark here."""

from dataclasses import dataclass, field
from datetime import datetime

# Why messages waited, in the order in which the reasons are tried.
CAP = "its own cap"
RATE = "its own rate"
BURST = "its own burst"
NEIGHBOUR = "a noisy neighbour"
WORKERS = "workers were busy"
REASONS = (CAP, RATE, BURST, NEIGHBOUR, WORKERS)


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """One channel, over the whole time."""

    channel: str
    arrivals: int = 0
    releases: int = 0
    completed: int = 0
    failures: int = 0
    retries: int = 0
    buried: int = 0
    expired: int = 0
    wait_total_ms: int = 0
    wait_p95_ms: int = 0
    wait_max_ms: int = 0
    run_total_ms: int = 0
    backlog_peak: int = 0
    share: float = 0.0
    entitled_share: float = 0.0
    weight: int = 1
    concurrency_peak: int = 0
    max_concurrency: int | None = None
    windows_over_cap: int = 0
    gap_min_ms: int | None = None
    gaps_too_small: int = 0
    release_interval_ms: int | None = None
    release_burst: int = 1
    blame_ms: float = 0.0
    # Milliseconds of waiting, by reason.
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def wait_mean_ms(self) -> float:
        return self.wait_total_ms / self.releases if self.releases else 0.0

    @property
    def main_reason(self) -> str:
        return (
            max(self.reasons, key=lambda reason: self.reasons[reason]) if any(self.reasons.values()) else ""
        )


@dataclass(frozen=True)
class Moment:
    """All channels in one stretch of time."""

    start: datetime
    arrivals: int
    completed: int
    deferred: int
    expired: int
    buried: int
    retries: int
    jain_index: float | None


@dataclass(frozen=True)
class Reading:
    """One channel in one stretch of time; the wait is the worst of its windows' 95th percentiles."""

    channel: str
    start: datetime
    wait_p95_ms: int | None
    backlog_peak: int
    share: float
    releases: int


@dataclass(frozen=True)
class Outlook:
    """A backlog, and what becomes of it if it goes on as of late."""

    channel: str
    backlog: int
    arrivals_per_hour: float
    served_per_hour: float
    in_1_hour: int
    in_6_hours: int
    in_24_hours: int
    empty_in_s: int | None


@dataclass(frozen=True, kw_only=True)
class Story:
    """Everything on the page; tenants in the order of their waiting, longest first."""

    begin: datetime
    end: datetime
    window_s: int
    stretch_s: int
    channels: int
    tenants: tuple[Tenant, ...]
    moments: tuple[Moment, ...]
    readings: tuple[Reading, ...]
    outlooks: tuple[Outlook, ...]
    until: datetime | None = None
    over_s: int = 3600
    made_at: datetime | None = None
    # Of all channels, also of those that are not among the tenants shown.
    releases: int = 0
    completed: int = 0
    failures: int = 0
    buried: int = 0
    retries: int = 0
    wait_total_ms: int = 0
    caps_held: int = 0
    caps_broken: int = 0
    rates_held: int = 0
    rates_broken: int = 0
