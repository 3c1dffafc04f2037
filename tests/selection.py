"""Which tests run on which kind of server, in which order, and which of them with `--fast` or `--heavy`."""

import re
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.server_kinds import ServerKind, server_kinds

# Each test runs on one kind of server, chosen by name, and the cases of a parametrised test take turns. These
# folders depend on the version of PostgreSQL most: `make test-heavy` runs them on the other kinds.
# `make test-matrix` runs all tests of SQL on each version.
HEAVY_ON_OTHER_KINDS = {"embedded", "plans"}
# These folders run on one kind, given by its index: what they need of it is tested on all kinds elsewhere.
TESTS_ON_ONE_KIND = {"cli": 0, "pipeline": -1, "spark": -1}
# Where --fast looks for tests. It leaves out those with these marks, and all kinds of servers but the first.
FAST_FOLDERS = {"cli", "client", "connections", "sql", "tasks", "unit", "worker"}
MARKS_LEFT_OUT = ("fault", "slow")

TESTS = Path(__file__).parent
ParameterSet = type(pytest.param())


def is_ignored(path: Path, *, is_fast: bool) -> bool:
    """Whether a file or folder is not even read."""
    folder = _folder_of(path)
    return is_fast and folder is not None and folder not in FAST_FOLDERS


def is_selected(item: pytest.Item, *, is_fast: bool, is_heavy: bool = False) -> bool:
    """Whether a test runs at all and, if it has a kind of server, whether it runs on this one."""
    kind = kind_of(item)
    is_marked = item.get_closest_marker("heavy") is not None
    if is_fast:
        is_left_out = is_marked or any(map(item.get_closest_marker, MARKS_LEFT_OUT))
        return not is_left_out and kind in (None, server_kinds()[0])
    is_on_its_kind = kind is None or _runs_on(item, kind, server_kinds())
    if is_heavy and _folder_of(item.path) in HEAVY_ON_OTHER_KINDS:
        return is_marked or not is_on_its_kind
    return is_on_its_kind and is_marked is is_heavy


def describe_left_out() -> str:
    """Say what --fast leaves out."""
    folders = {_folder_of(path) for path in TESTS.glob("*/**/test_*.py")} - FAST_FOLDERS
    others = "".join(f"PostgreSQL {kind.name}, " for kind in server_kinds()[1:])
    names = ", ".join(sorted(map(str, folders)))
    marks = " or ".join(MARKS_LEFT_OUT)
    return f"left out: tests marked {marks}; {others}tests of {names}. make test runs them."


def sort_key(item: pytest.Item) -> tuple[int, bool, int]:
    """One kind of server after the other; groups and slow tests first; the rest mixed, because many wait."""
    kind = kind_of(item)
    position = -1 if kind is None else len(server_kinds()) - server_kinds().index(kind)
    if group_of(item.path) is not None:
        return position, False, 0
    return position, item.get_closest_marker("slow") is None, zlib.crc32(item.nodeid.encode())


def kind_of(item: pytest.Item) -> ServerKind | None:
    return item.callspec.params.get("server_kind") if hasattr(item, "callspec") else None


@cache
def group_of(path: Path) -> str | None:
    """Return the group of a file's tests. Those of a group run in one process, because they share a program.

    All tests that use Spark share a JVM; the tests of a file that uses a browser share the browser.
    """
    text = path.read_text(encoding="utf-8")
    if re.search(r"\bspark: |usefixtures\(.*\"spark\"", text):
        return "spark"
    return str(path) if re.search(r"^from (tests\.browser|playwright)\b", text, re.MULTILINE) else None


def _runs_on(item: pytest.Item, kind: ServerKind, kinds: list[ServerKind]) -> bool:
    folder = _folder_of(item.path)
    if folder in TESTS_ON_ONE_KIND:
        return kinds[TESTS_ON_ONE_KIND[folder]] == kind
    # By name and place, so that a test runs on the same kind whichever tests are selected.
    number = zlib.crc32(item.nodeid.partition("[")[0].encode()) + sum(_places_of_arguments(item))
    return kinds[number % len(kinds)] == kind


def _places_of_arguments(item: Any) -> list[int]:
    """Return, for each parametrisation of the test, the place of its arguments in the list."""
    places = []
    for mark in item.iter_markers("parametrize"):
        names, cases = mark.args[:2]
        names = re.findall(r"\w+", names) if isinstance(names, str) else names
        chosen = [item.callspec.params[name] for name in names]
        places.append([_arguments_of(case, len(names)) for case in cases].index(chosen))
    return places


def _arguments_of(case: Any, count: int) -> list[Any]:
    if isinstance(case, ParameterSet):
        return list(case.values)
    return list(case) if count > 1 else [case]


def _folder_of(path: Path) -> str | None:
    """Return the folder of tests that a path is in, if it is in one."""
    folder, *below = path.relative_to(TESTS).parts or [None]
    return folder if below or path.is_dir() else None
