"""Benchmarks the core of the queue; every figure is compared with one measured in the same run."""

import argparse
import dataclasses
import sys
import time

from benchmarks import merge, options, results
from benchmarks.cases import CASES
from benchmarks.harness import EFFORTS, Case, Harness, Row
from benchmarks.server import run_server


def main(arguments: list[str] | None = None) -> int:
    chosen = parse(arguments)
    if chosen.list:
        print("\n".join(f"{case.name:32} {case.title}" for case in CASES))
        return 0
    cases = [case for case in CASES if not chosen.case or case.name in chosen.case]
    with run_server(chosen.dsn, chosen.server, chosen.profile, chosen.effort != "smoke") as server:
        effort = EFFORTS[chosen.effort]
        harness = Harness(server, dataclasses.replace(effort, rounds=chosen.rounds or effort.rounds))
        sql_before = results.sql_digest()
        print(results.HEADING, flush=True)
        rows = [row for case in cases for row in run_case(case, harness)]
        if results.sql_digest() != sql_before:
            print("the SQL was edited during the run: these figures mix versions and are worthless")
        if not chosen.no_write:
            content = results.document(rows, harness, sql_before)
            path = merge.write_results(chosen.output, content, merge_results if chosen.merge else None)
            print(f"written to {path}")
    return 1 if chosen.strict and not all(row.holds for row in rows) else 0


def run_case(case: Case, harness: Harness) -> list[Row]:
    began_at = time.monotonic()
    rows = [dataclasses.replace(row, measured=results.current_conditions()) for row in case.run(harness)]
    for row in rows:
        print(results.format_row(row), flush=True)
    harness.progress(f"  {case.name} took {time.monotonic() - began_at:.0f} s")
    return rows


def merge_results(former: merge.Json, later: merge.Json) -> merge.Json:
    """Return the later run, plus the cases that only the former run has measured."""
    merge.check_comparable(former, later, (*merge.MACHINE, merge.SQL, merge.EFFORT))
    order = [case.name for case in CASES]
    return later | {"rows": merge.replace_rows(former["rows"], later["rows"], "case", order)}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=__doc__)
    parser.add_argument(
        "--case", action="append", choices=names, metavar="NAME", help="run only this case; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="list the cases and exit")
    parser.add_argument(
        "--profile", action="store_true", help="show where the server spends its time (slower)"
    )
    options.add_shared(
        parser,
        "core",
        {"quick": "all cases in under 5 minutes", "full": "longer, in five rounds", "smoke": "a few seconds"},
    )
    options.add_output(parser, "core", "cases")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
