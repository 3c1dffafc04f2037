"""Which tests are run: by `make test` on which kind of server, and by `make test-fast`."""

import re
import subprocess
import sys
from pathlib import Path

from tests.selection import group_of
from tests.server_kinds import server_kinds

ROOT = Path(__file__).resolve().parents[2]
RACES = "tests/races/test_full_speed.py::test_every_message_is_completed_exactly_once"


def _collect(*arguments: str) -> str:
    """Return what pytest prints about the tests that it would run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_cases_of_a_parametrised_test_take_turns_on_the_kinds_of_servers() -> None:
    found = re.findall(r"once\[(\w+-\w+)-(.+)\]", _collect("tests/races/test_full_speed.py"))
    assert sorted(case for _, case in found) == [
        "capped-batches",
        "capped-small calls",
        "uncapped-batches",
        "uncapped-small calls",
    ]
    assert {kind for kind, _ in found} == {kind.name for kind in server_kinds()}
    case = f"{RACES}[{'-'.join(found[0])}]"
    assert case in _collect(case).splitlines()


def test_each_test_of_plans_runs_on_one_kind_and_its_heavy_runs_on_the_others() -> None:
    page = "tests/plans/test_dead_rows.py"
    usual, heavy = (
        set(re.findall(r"rows\[(\w+-\w+)-(\d+)\]", _collect(*more, page))) for more in ([], ["--heavy"])
    )
    kinds = [kind.name for kind in server_kinds()]
    assert usual | heavy == {(kind, case) for kind in kinds for case in ("1", "3000")}
    assert len(usual) == 2
    assert not usual & heavy


def test_fast_tests_need_neither_spark_nor_a_second_server() -> None:
    out = _collect(
        "--fast", "tests/spark", "tests/pipeline", "tests/sql/test_fifo.py", "tests/worker/test_neighbours.py"
    )
    tests, _, rest = out.partition("\n\n")
    assert {line.partition("::")[0] for line in tests.splitlines()} == {
        "tests/sql/test_fifo.py",
        "tests/worker/test_neighbours.py",
    }
    assert {kind.name for kind in server_kinds() if kind.name in tests} == {server_kinds()[0].name}
    assert "::test_memory_is_bounded_by_max_bytes" not in tests
    assert re.search(r"left out: tests marked fault or slow; .*\bpipeline, .*\bspark\b", rest)


def test_tests_that_share_a_program_are_in_one_group() -> None:
    groups = {path: group_of(path) for path in (ROOT / "tests").glob("*/test_*.py")}
    by_name = {path.relative_to(ROOT / "tests").as_posix(): group for path, group in groups.items()}
    assert by_name["spark/test_operations.py"] == by_name["pipeline/test_pages.py"] == "spark"
    assert by_name["sql/test_fifo.py"] is None
    browsers = [path for path, group in groups.items() if group == str(path)]
    assert {"test_report.py", "test_site.py"} <= {path.name for path in browsers}
