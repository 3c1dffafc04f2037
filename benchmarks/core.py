"""The benchmark of the queue's core: every figure is a ratio of things measured in the same run."""

import argparse
import dataclasses
import sys
import time

from benchmarks import merging, options, results
from benchmarks.bench import EFFORTS, Bench, Case, Row
from benchmarks.cases import CASES
from benchmarks.server import serve


def main(arguments: list[str] | None = None) -> int:
    chosen = parse(arguments)
    if chosen.list:
        print("\n".join(f"{case.name:32} {case.title}" for case in CASES))
        return 0
    cases = [case for case in CASES if not chosen.case or case.name in chosen.case]
    with serve(chosen.dsn, chosen.server, chosen.profile, chosen.effort != "smoke") as server:
        effort = EFFORTS[chosen.effort]
        bench = Bench(server, dataclasses.replace(effort, rounds=chosen.rounds or effort.rounds))
        sql_before = results.sql_digest()
        print(results.HEADING, flush=True)
        rows = [row for case in cases for row in measured(case, bench)]
        if results.sql_digest() != sql_before:
            print("the SQL was edited during the run: these figures mix versions and prove nothing")
        if not chosen.no_write:
            content = results.document(rows, bench, sql_before)
            print(f"written to {merging.write(chosen.output, content, merged if chosen.merge else None)}")
    return 1 if chosen.strict and not all(row.holds for row in rows) else 0


def measured(case: Case, bench: Bench) -> list[Row]:
    began_at = time.monotonic()
    rows = [dataclasses.replace(row, measured=results.moment()) for row in case.run(bench)]
    for row in rows:
        print(results.line(row), flush=True)
    bench.progress(f"  {case.name} took {time.monotonic() - began_at:.0f} s")
    return rows


def merged(former: merging.Json, later: merging.Json) -> merging.Json:
    """Return the later run with those cases of the former that it has not measured again."""
    merging.check(former, later, (*merging.MACHINE, merging.SQL, merging.EFFORT))
    order = [case.name for case in CASES]
    return later | {"rows": merging.replaced(former["rows"], later["rows"], "case", order)}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=__doc__)
    parser.add_argument(
        "--case", action="append", choices=names, metavar="NAME", help="run only this; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--profile", action="store_true", help="say where the server's time goes (slower)")
    options.add_shared(
        parser,
        "core",
        {"quick": "all in under 5 minutes", "full": "longer, in five rounds", "smoke": "seconds"},
    )
    options.add_output(parser, "core", "cases")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
