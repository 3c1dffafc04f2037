"""docs/invariants.md names an existing test for each capability, invariant and rule."""

import ast
import fnmatch
import re
from functools import cache
from pathlib import Path

import pytest

from tests.interleavings.mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "invariants.md"
# The section of each kind, how its rows begin, and the number that it must at least reach.
KINDS = {
    "capability": ("Capabilities", "A", 28),
    "invariant": ("Invariants", "", 9),
    "rule": ("Rules", "", 15),
}
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
# "Rule 5", "invariants 8 and 9", "Rules 9 and 14"; "A7", "A11 to A13".
NUMBER = re.compile(r"\b(rule|invariant)s? (\d+)(?: and (\d+))?", re.IGNORECASE)
CAPABILITY = re.compile(r"\bA(\d+)(?: to A(\d+))?\b")


@cache
def rows(kind: str) -> dict[int, str]:
    """Return the rows of one table of the page, by number."""
    heading, letter, _ = KINDS[kind]
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(rf"^\| {letter}(\d+) \| (.+) \|$", section, re.MULTILINE)
    assert len(found) == len(dict(found)), f"a {kind} has two rows"
    return {int(number): row for number, row in found}


@cache
def functions(path: Path) -> set[str]:
    module = ast.parse(path.read_text(encoding="utf-8"))
    return {one.name for one in module.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


def references(path: Path) -> set[tuple[str, int]]:
    """Return what a test file refers to: in its name, and in its docstrings."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    text = "\n".join(ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds))
    found = {("rule", int(number)) for number in re.findall(r"_rule_(\d+)_", path.name)}
    for kind, first, second in NUMBER.findall(text):
        found |= {(kind.lower(), int(number)) for number in (first, second) if number}
    for first, last in CAPABILITY.findall(text):
        found |= {("capability", number) for number in range(int(first), int(last or first) + 1)}
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_number_is_missing(kind: str) -> None:
    assert list(rows(kind)) == list(range(1, len(rows(kind)) + 1))
    assert len(rows(kind)) >= KINDS[kind][2]


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_names_tests_that_exist(kind: str) -> None:
    unproven = [number for number, row in rows(kind).items() if not TEST.search(row)]
    named = [test for row in rows(kind).values() for test in TEST.findall(row)]
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file() or name not in functions(ROOT / path)
    ]
    assert (unproven, missing) == ([], [])
    # Nothing that looks like a test escapes the pattern.
    assert sum(row.count("::") for row in rows(kind).values()) == len(named)


def test_each_rule_has_a_mutant_and_each_mutant_a_row() -> None:
    """The page about interleavings names them by patterns."""
    text = (ROOT / "docs" / "explanation" / "interleavings.md").read_text(encoding="utf-8")
    section = text.partition("\n| rules | mutants |\n")[2].partition("\n\n")[0]
    found = {
        head: re.findall(r"`([^`]+)`", row)
        for head, row in re.findall(r"^\| (.+?) \| (.+) \|$", section, re.M)
    }
    assert {int(number) for head in found for number in re.findall(r"^\d+", head)} == set(rows("rule"))
    patterns = [one for row in found.values() for one in row]
    assert [one for one in patterns if not fnmatch.filter(MUTANTS, one)] == []
    assert [name for name in MUTANTS if not any(fnmatch.fnmatch(name, one) for one in patterns)] == []


def test_the_numbers_that_tests_refer_to_are_on_the_page() -> None:
    known = {(kind, number) for kind in KINDS for number in rows(kind)}
    referring = {path: references(path) for path in sorted((ROOT / "tests").rglob("*.py"))}
    assert len({one for found in referring.values() for one in found}) > 30
    unknown = {str(path.relative_to(ROOT)): found - known for path, found in referring.items()}
    assert {path: found for path, found in unknown.items() if found} == {}


def test_a_test_of_a_rule_is_named_in_the_row_of_that_rule() -> None:
    files = {path.name: int(path.name.split("_")[2]) for path in (ROOT / "tests").rglob("test_rule_*.py")}
    assert len(files) > 10
    assert [name for name, number in files.items() if name not in rows("rule")[number]] == []
