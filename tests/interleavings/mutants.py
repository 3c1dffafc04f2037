"""Mutants: the queue with one rule taken away each. The search must notice every one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.interleavings.execution import Trace
from tests.interleavings.laboratory import Laboratory
from tests.interleavings.rules import RULES
from tests.interleavings.scenarios import scenario
from tests.interleavings.search import Search

Changes = Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True)
class Kill:
    """How a mutant was noticed; without a trace, it was not."""

    scenario: str
    trace: Trace | None
    schedules: int


@dataclass(frozen=True)
class Mutant:
    """Replaces text in files of src/lonnymq/sql/functions, given by name."""

    name: str
    # Scenarios in which it is noticed.
    scenarios: tuple[str, ...]
    changes: Changes = field(default_factory=dict)
    # Why it cannot be noticed.
    survives: str = ""

    def kill(self, laboratory: Laboratory, bound: int) -> Kill:
        """Search for a schedule that notices the mutant, with few interventions first."""
        laboratory.change(self.changes)
        schedules = 0
        try:
            for most in range(bound + 1):
                for name in self.scenarios:
                    search = Search(laboratory, scenario(name))
                    result = search.enumerate(most)
                    schedules += result.schedules
                    if result.failed:
                        return Kill(name, result.failed[0], schedules)
            return Kill("", None, schedules)
        finally:
            laboratory.change({})


MUTANTS = {
    name: Mutant(name, tuple(scenarios.split()), changes, survives)
    for name, (scenarios, changes, survives) in RULES.items()
}
