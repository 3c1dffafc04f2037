"""The contents of a report: plain values, small whatever the size of the history. Does not import Spark."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from lonnymq.texts import escape_hidden

# Why messages waited, in the order of the columns of the lake's table `reasons`.
CAP = "its own cap"
RATE = "its own rate limit"
BURST = "its own burst"
NEIGHBOUR = "a noisy neighbour"
WORKERS = "busy workers"
REASONS = (CAP, RATE, BURST, NEIGHBOUR, WORKERS)


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """A tenant's channel over the whole time."""

    channel: str
    arrivals: int = 0
    releases: int = 0
    completed: int = 0
    failures: int = 0
    retries: int = 0
    buried: int = 0
    expired: int = 0
    wait_total_ms: int = 0
    wait_p50_ms: int = 0
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
class Period:
    """All channels in one period, which is one or more windows."""

    start: datetime
    arrivals: int
    completed: int
    deferred: int
    expired: int
    buried: int
    retries: int
    jain_index: float | None


@dataclass(frozen=True)
class TenantPeriod:
    """One channel in one period; the wait is the 95th percentile."""

    channel: str
    start: datetime
    wait_p95_ms: int | None
    backlog_peak: int
    share: float
    releases: int


@dataclass(frozen=True)
class BacklogForecast:
    """A channel's backlog, and its course if recent rates continue."""

    channel: str
    backlog: int
    arrivals_per_hour: float
    served_per_hour: float
    in_1_hour: int
    in_6_hours: int
    in_24_hours: int
    empty_in_s: int | None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Everything on the page; tenants are in the order of their waiting time, longest first."""

    begin: datetime
    end: datetime
    window_s: int
    period_s: int
    channels: int
    tenants: tuple[Tenant, ...]
    periods: tuple[Period, ...]
    tenant_periods: tuple[TenantPeriod, ...]
    forecasts: tuple[BacklogForecast, ...]
    until: datetime | None = None
    over_s: int = 3600
    made_at: datetime | None = None
    # Totals of all channels, including those that are not shown.
    releases: int = 0
    completed: int = 0
    failures: int = 0
    buried: int = 0
    retries: int = 0
    wait_total_ms: int = 0
    wait_p50_ms: int | None = None
    wait_p95_ms: int | None = None
    caps_held: int = 0
    caps_broken: int = 0
    rates_held: int = 0
    rates_broken: int = 0

    def with_visible_names(self) -> "Summary":
        """Escape what is invisible in the tenants' names, or changes the direction of the text after them."""
        return replace(
            self,
            tenants=_with_visible_names(self.tenants),
            tenant_periods=_with_visible_names(self.tenant_periods),
            forecasts=_with_visible_names(self.forecasts),
        )


Named = TypeVar("Named", Tenant, TenantPeriod, BacklogForecast)


def _with_visible_names(rows: tuple[Named, ...]) -> tuple[Named, ...]:
    return tuple(replace(row, channel=escape_hidden(row.channel, keep="")) for row in rows)
