"""How a case measures: fresh databases, interleaved rounds, medians, rows."""

import contextlib
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.contenders.contender import Contender
from benchmarks.profile import report
from benchmarks.server import Server


@dataclass(frozen=True)
class Effort:
    """How long and how much; ratios are the same, noise is not."""

    name: str
    rounds: int
    window_s: float
    # Messages that wait before a drain: enough for its window.
    backlog: int
    # Messages before the measurement under a held snapshot.
    before: int
    large_backlogs: tuple[int, ...]
    bulk: int
    # Of which 1,000 are active.
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


class Figure(float):
    """A median that remembers its rounds."""

    rounds: tuple[float, ...]

    def __new__(cls, rounds: Sequence[float]) -> "Figure":
        figure = super().__new__(cls, statistics.median(rounds))
        figure.rounds = tuple(rounds)
        return figure


@dataclass(frozen=True)
class Moment:
    """When something was measured, and how busy the machine was at the end of it."""

    date: str
    load: float


@dataclass(frozen=True)
class Row:
    """One figure; the bound is on the ratio, or on the value where there is no reference."""

    case: str
    title: str
    against: str | None
    unit: str
    value: float
    reference: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    measured: Moment | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.reference if self.reference else None

    @property
    def holds(self) -> bool:
        return self._is_within(self.value if self.reference is None else self.ratio)

    @property
    def ratios(self) -> tuple[float, ...]:
        """Round by round: what was measured in the same minute."""
        if isinstance(self.value, Figure) and isinstance(self.reference, Figure):
            pairs = zip(self.value.rounds, self.reference.rounds, strict=True)
            return tuple(value / reference for value, reference in pairs if reference)
        return ()

    @property
    def is_certain(self) -> bool:
        """Whether three rounds or more agree; otherwise noise may have decided."""
        if self.reference is None:
            return True
        return len(self.ratios) >= 3 and {self._is_within(ratio) for ratio in self.ratios} == {self.holds}

    def _is_within(self, judged: float | None) -> bool:
        if judged is None:
            return False
        return (self.at_least is None or judged >= self.at_least) and (
            self.at_most is None or judged <= self.at_most
        )


@dataclass
class Bench:
    """What a case gets to measure with."""

    server: Server
    effort: Effort
    progress: Callable[[str], None] = field(default=lambda line: print(line, file=sys.stderr, flush=True))

    @contextlib.contextmanager
    def installed(self, contender: Contender) -> Iterator[str]:
        """A fresh database with this contender in it."""
        with self.server.database() as dsn:
            contender.install(dsn)
            yield dsn
            if self.server.is_profiled:
                self.progress(report(dsn, contender.name))

    def interleaved(self, case: str, measurements: dict[str, Callable[[], float]]) -> dict[str, Figure]:
        """The median of each, taken in turns, because the machine's mood changes."""
        figures: dict[str, list[float]] = {name: [] for name in measurements}
        for number in range(self.effort.rounds):
            for name, measure in measurements.items():
                figure = measure()
                figures[name].append(figure)
                self.progress(f"  {case} {number + 1}/{self.effort.rounds} {name}: {figure:,.0f}")
        return {name: Figure(values) for name, values in figures.items()}


@dataclass(frozen=True)
class Case:
    """A row of the results' table, or a few that are measured together."""

    name: str
    title: str
    run: Callable[[Bench], list[Row]]
