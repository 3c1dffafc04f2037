"""The benchmark of what runs on Spark: every figure is a ratio of things measured in the same run."""

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path

from benchmarks import options, results
from benchmarks.bench import EFFORTS, Bench, Row
from benchmarks.spark import analyse, archive, doors
from benchmarks.spark.ground import SIZES, Ground, jdbc_jar, serve, session

CASES = {"write": doors.write, "read": doors.read, "archive": archive.run, "analyse": analyse.run}
NOTE = (
    "Read them as ratios; local[2], rows of 100 bytes. The JDBC writer is not atomic: half of its rows may "
    "stay. Its driver comes from Debian's libpostgresql-jdbc-java; without it these rows are left out."
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this; repeatable")
    options.add_shared(
        parser, "spark", {"quick": "a tenth of the rows", "full": "five rounds", "smoke": "seconds"}
    )
    options.add_output(parser, "spark")
    chosen = parser.parse_args(arguments)
    effort = dataclasses.replace(
        EFFORTS[chosen.effort], rounds=chosen.rounds or EFFORTS[chosen.effort].rounds
    )
    rows: list[Row] = []
    with (
        serve(chosen.dsn, chosen.server) as server,
        tempfile.TemporaryDirectory(prefix="lonnymq-bench-") as directory,
        session(jdbc_jar()) as spark,
    ):
        sql_before = results.sql_digest()
        ground = Ground(Bench(server, effort), spark, Path(directory), SIZES[effort.name], jdbc_jar())
        print(results.HEADING, flush=True)
        for name, case in CASES.items():
            if not chosen.case or name in chosen.case:
                for row in case(ground):
                    print(results.line(row), flush=True)
                    rows.append(row)
        head = results.circumstances(server, sql_before, {"effort": effort.name, "rounds": effort.rounds})
    if not chosen.no_write:
        content = head | {"note": NOTE, "rows": [results.as_json(row) for row in rows]}
        print(f"written to {results.save(chosen.output, content)}")
    return 1 if chosen.strict and not all(row.holds for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
