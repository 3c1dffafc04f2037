"""Measures the cases: fresh databases, interleaved rounds, medians, and rows of the results."""

import contextlib
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.contenders.contender import Contender
from benchmarks.server import Server
from benchmarks.server_profile import profile_report


@dataclass(frozen=True)
class Effort:
    """How long and how much to measure; a longer run has the same ratios and less noise."""

    name: str
    rounds: int
    window_s: float
    # Messages waiting before a drain, enough for its window.
    backlog: int
    # Messages processed under a held snapshot before the measurement.
    messages_before: int
    large_backlogs: tuple[int, ...]
    bulk: int
    # Channels, of which 1,000 are active.
    channels: int
    wakeups: int
    drained_for_memory: int


EFFORTS = {
    "quick": Effort("quick", 1, 2.0, 300_000, 100_000, (1_000_000,), 500_000, 100_000, 200, 200_000),
    "standard": Effort(
        "standard", 3, 5.0, 700_000, 200_000, (1_000_000, 10_000_000), 1_000_000, 100_000, 500, 1_000_000
    ),
    "full": Effort(
        "full", 5, 8.0, 1_100_000, 200_000, (1_000_000, 10_000_000), 1_000_000, 100_000, 1_000, 1_000_000
    ),
    "smoke": Effort("smoke", 1, 0.3, 30_000, 2_000, (20_000,), 2_000, 2_000, 10, 3_000),
}


class Median(float):
    """The median of several rounds; keeps the rounds."""

    rounds: tuple[float, ...]

    def __new__(cls, rounds: Sequence[float]) -> "Median":
        figure = super().__new__(cls, statistics.median(rounds))
        figure.rounds = tuple(rounds)
        return figure


@dataclass(frozen=True)
class RunConditions:
    """The time of a measurement, and the machine's load at its end."""

    date: str
    load: float


@dataclass(frozen=True)
class Row:
    """A row of the results; the bound applies to the ratio or, without a reference, to the value."""

    case: str
    title: str
    against: str | None
    unit: str
    value: float
    reference: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    measured: RunConditions | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.reference if self.reference else None

    @property
    def holds(self) -> bool:
        return self._is_within(self.value if self.reference is None else self.ratio)

    @property
    def ratios(self) -> tuple[float, ...]:
        """The ratio of each round, whose two values were measured within minutes of each other."""
        if isinstance(self.value, Median) and isinstance(self.reference, Median):
            pairs = zip(self.value.rounds, self.reference.rounds, strict=True)
            return tuple(value / reference for value, reference in pairs if reference)
        return ()

    @property
    def is_certain(self) -> bool:
        """Whether at least three rounds agree; otherwise noise may have decided."""
        if self.reference is None:
            return True
        return len(self.ratios) >= 3 and {self._is_within(ratio) for ratio in self.ratios} == {self.holds}

    def _is_within(self, figure: float | None) -> bool:
        if figure is None:
            return False
        return (self.at_least is None or figure >= self.at_least) and (
            self.at_most is None or figure <= self.at_most
        )


@dataclass
class Harness:
    """What a case measures with."""

    server: Server
    effort: Effort
    progress: Callable[[str], None] = field(default=lambda line: print(line, file=sys.stderr, flush=True))

    @contextlib.contextmanager
    def install(self, contender: Contender) -> Iterator[str]:
        """Create a fresh database, and install this contender in it."""
        with self.server.database() as dsn:
            contender.install(dsn)
            yield dsn
            if self.server.is_profiled:
                self.progress(profile_report(dsn, contender.name))

    def measure_in_turns(self, case: str, measurements: dict[str, Callable[[], float]]) -> dict[str, Median]:
        """Measure all in turns, round by round, because the machine's speed varies; return the medians."""
        values: dict[str, list[float]] = {name: [] for name in measurements}
        for number in range(self.effort.rounds):
            for name, measure in measurements.items():
                value = measure()
                values[name].append(value)
                self.progress(f"  {case} {number + 1}/{self.effort.rounds} {name}: {value:,.0f}")
        return {name: Median(rounds) for name, rounds in values.items()}


@dataclass(frozen=True)
class Case:
    """One row of the results, or several that are measured together."""

    name: str
    title: str
    run: Callable[[Harness], list[Row]]
