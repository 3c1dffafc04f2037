"""Tests every version of PostgreSQL and of Python: make test-matrix MATRIX_ARGS="--pg 14,18 --python 3.14".

What a run needs is downloaded into .matrix/, pinned by hash. Without options, each PostgreSQL is tested with
the Python of .venv, and each other Python with the newest PostgreSQL. With one option, the other version is
also one of these; with both, every combination is tested.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tools.matrix import pythons, report, servers
from tools.matrix.downloads import NotAvailable

ROOT = Path(__file__).resolve().parents[2]
TESTS = (
    "tests/sql",
    "tests/plans",
    "tests/client",
    "tests/migration",
    "tests/worker/test_serving.py",
    "tests/worker/test_notifications.py",
    "tests/worker/test_transactions.py",
)
NEWEST = max(servers.PINS, key=int)


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    tests = options.tests or list(TESTS)
    results, rows = [], []
    for pg, python in combinations(options.pg, options.python):
        print(f"PostgreSQL {pg}, Python {python}", flush=True)
        results.append(_test(pg, python, tests, options.processes))
        rows.append(report.row(results[-1], tests, datetime.now(UTC).date()))
        if options.write:
            report.write(rows)
    print(report.table(rows))
    return 0 if all(result.is_passed for result in results) else 1


def combinations(pgs: list[str] | None, versions: list[str] | None) -> list[tuple[str, str]]:
    """Return the pairs of versions to test."""
    if pgs is None and versions is None:
        with_each_pg = [(pg, pythons.RUNNING) for pg in servers.PINS]
        return [*with_each_pg, *((NEWEST, one) for one in pythons.VERSIONS if one != pythons.RUNNING)]
    return [(pg, one) for pg in pgs or [NEWEST] for one in versions or [pythons.RUNNING]]


def _test(pg: str, version: str, tests: list[str], processes: int) -> report.Result:
    try:
        server, python = servers.install(pg), pythons.install(version)
    except NotAvailable as error:
        return report.Result(pg, version, problem=str(error))
    names = servers.version_of(server), pythons.version_of(python)
    environment = os.environ | {"LONNYMQ_TEST_BINARIES": str(server)}
    environment.pop("LONNYMQ_TEST_DSN", None)
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "results.xml"
        command: list[str | Path] = [python, "-m", "pytest", "-q", "-o", f"cache_dir={folder}/cache"]
        command += [f"--junitxml={counts}", *tests]

        def run(*options: str) -> report.Result:
            counts.unlink(missing_ok=True)
            code = subprocess.run([*command, *options], cwd=ROOT, env=environment).returncode
            if not counts.exists():
                return report.Result(*names, problem=f"pytest ended with {code}")
            return report.read(*names, counts.read_bytes(), code)

        result = run("-n", str(processes), "--dist", "loadgroup") if processes > 1 else run()
        if not result.failed or result.problem:
            return result
        print("once more, one after the other:", flush=True)
        return result.after_repetition(run("--last-failed"))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description=__doc__)
    parser.add_argument(
        "--pg", type=_list_of(tuple(servers.PINS)), help="versions of PostgreSQL, such as 14,18"
    )
    parser.add_argument(
        "--python", type=_list_of(pythons.VERSIONS), help="versions of Python, such as 3.12,3.14"
    )
    parser.add_argument("--tests", type=str.split, help="files and folders of tests, separated by spaces")
    parser.add_argument("-n", "--processes", type=int, default=2, help="processes that share the tests (2)")
    parser.add_argument(
        "--write", action="store_true", help="record each result in docs/reference/versions.md"
    )
    return parser.parse_args(arguments)


def _list_of(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        chosen = text.split(",")
        if not set(chosen) <= set(allowed):
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of {', '.join(allowed)}")
        return chosen

    return parse


if __name__ == "__main__":
    sys.exit(main())
