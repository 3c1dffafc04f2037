"""docs/howto/high-availability.md names scenarios and tests that exist."""

import re
from pathlib import Path

from tests.chaos.scenarios import SCENARIOS
from tests.unit.test_invariants_page import functions

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "howto" / "high-availability.md").read_text(encoding="utf-8")
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")


def test_each_row_names_a_scenario_that_exists() -> None:
    known = {one.name for one in SCENARIOS}
    _, *rows = re.findall(r"^\| .* \|$", TEXT.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) > 4
    for row in rows:
        named = set(re.findall(r"`([a-z-]+)`", row.rpartition(" | ")[2]))
        assert named, row
        assert named <= known, row


def test_each_test_that_it_names_exists() -> None:
    named = TEST.findall(TEXT)
    assert len(named) > 5
    missing = [
        (path, name)
        for path, name in named
        if not (ROOT / path).is_file() or (name and name not in functions(ROOT / path))
    ]
    assert missing == []
