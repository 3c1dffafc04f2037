"""The result of a matrix of tests: a table, and the page in the docs that shows it."""

import datetime
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "versions.md"
BEGIN, END = "<!-- written by make test-matrix: -->\n", "<!-- end of what make test-matrix writes -->\n"


@dataclass(frozen=True)
class Result:
    """The outcome of the tests with one pair of versions. With a `problem`, they did not run."""

    pg: str
    python: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    problem: str = ""
    # Tests that failed at first, and passed when they were repeated.
    repeated: int = 0

    @property
    def is_passed(self) -> bool:
        return not self.problem and not self.failed and self.passed > 0

    def after_repetition(self, again: "Result") -> "Result":
        """Return this result with that of another run of the tests that have failed."""
        repeated = self.failed - again.failed
        return replace(
            self,
            passed=self.passed + repeated,
            failed=again.failed,
            problem=again.problem,
            repeated=repeated,
        )


def read(pg: str, python: str, junit: bytes, code: int) -> Result:
    """Return the result that pytest has written; `code` is its exit code."""
    suite = ElementTree.fromstring(junit).find("testsuite")
    assert suite is not None
    total, failures, errors, skipped = (
        int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    problem = f"pytest ended with {code}" if code > 1 else ""
    return Result(pg, python, total - failed - skipped, failed, skipped, problem)


HEADER = ("PostgreSQL", "Python", "tests", "date", "passed", "of these, repeated", "failed", "skipped")
Row = tuple[str, ...]


def row(result: Result, tests: list[str], date: datetime.date) -> Row:
    counts = (result.passed, result.repeated, result.failed, result.skipped)
    cells = (result.problem, "", "", "") if result.problem else tuple(map(str, counts))
    return result.pg, result.python, ", ".join(f"`{test}`" for test in tests), str(date), *cells


def table(found: list[Row]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(row)} |\n" for row in (HEADER, ("---",) * len(HEADER), *found)]
    return "".join(lines)


def write(found: list[Row], page: Path = PAGE) -> None:
    """Add rows to the page. They replace those of the same versions and tests; the others stay."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    lines = [line for line in old.splitlines() if line[2:3].isdigit()]
    kept = [tuple(line.removeprefix("| ").removesuffix(" |").split(" | ")) for line in lines]
    merged = {_key(row): row for row in [*kept, *found]}
    page.write_text(
        f"{before}{BEGIN}{table([merged[key] for key in sorted(merged)])}{END}{after}", encoding="utf-8"
    )


def _key(row: Row) -> Row:
    """Return the major versions and the tests of a row."""
    pg, python, tests = row[:3]
    return pg.partition(".")[0], ".".join(python.split(".")[:2]), tests
