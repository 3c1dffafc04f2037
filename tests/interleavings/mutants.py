"""Mutants: the queue with one rule taken away each. The search must notice every one of them.

Some rules are about something else than the order of statements. Their mutants are noticed by other tests.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psycopg import Connection

from tests.interleavings.execution import Trace
from tests.interleavings.laboratory import Laboratory, changed_text
from tests.interleavings.rules import RULES
from tests.interleavings.scenarios import scenario
from tests.interleavings.search import Search
from tests.interleavings.tested_rules import TESTED_RULES

Changes = Mapping[str, Sequence[tuple[str, str]]]
ROOT = Path(__file__).resolve().parents[2]
# pytest's exit code if tests have failed.
TESTS_FAILED = 1


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
    # The test that notices it, if it is not the search; and what changes tables.
    test: str = ""
    sql: str = ""

    def apply(self, connection: Connection[Any]) -> None:
        """Take the rule away in an installed queue."""
        with connection.transaction():
            connection.execute("set local search_path to lonnymq, pg_temp")
            for name, replacements in self.changes.items():
                connection.execute(changed_text(name, replacements).encode())
            connection.execute(self.sql.encode())

    def fails_its_test(self) -> bool:
        """Run the test that notices the mutant, and return whether it does."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", self.test]
        environment = {**os.environ, "LONNYMQ_TEST_MUTANT": self.name}
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if run.returncode not in (0, TESTS_FAILED):
            raise RuntimeError(f"{self.test} could not be run: {run.stdout[-2000:]}{run.stderr[-2000:]}")
        return run.returncode == TESTS_FAILED

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
} | {
    name: Mutant(name, (), changes, test=test, sql=sql) for name, (test, changes, sql) in TESTED_RULES.items()
}
