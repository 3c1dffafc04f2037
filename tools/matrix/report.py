"""The result of a matrix of tests: a table, and the page in the docs that shows it."""

import datetime
import re
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


def table(results: list[Result]) -> list[str]:
    """Return the lines of a Markdown table."""
    rows: list[tuple[str, ...]] = [
        ("PostgreSQL", "Python", "passed", "of these, repeated", "failed", "skipped"),
        ("---",) * 6,
    ]
    for result in results:
        counts = (result.passed, result.repeated, result.failed, result.skipped)
        cells = (result.problem, "", "", "") if result.problem else tuple(map(str, counts))
        rows.append((result.pg, result.python, *cells))
    return [f"| {' | '.join(row)} |" for row in rows]


def write(results: list[Result], tests: list[str], date: datetime.date, page: Path = PAGE) -> None:
    """Replace the generated part of the page."""
    selection = ", ".join(f"`{test}`" for test in tests)
    lines = [f"Run on {date}, with {selection}:", "", *table(results), ""]
    text = page.read_text(encoding="utf-8")
    generated = BEGIN + "\n".join(lines) + "\n" + END
    pattern = re.escape(BEGIN) + ".*" + re.escape(END)
    page.write_text(re.sub(pattern, lambda _: generated, text, flags=re.DOTALL), encoding="utf-8")
