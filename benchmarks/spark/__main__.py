"""Benchmarks what runs on Spark; every figure is compared with one measured in the same run."""

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path

from benchmarks import merge, options, results
from benchmarks.harness import EFFORTS, Harness, Row
from benchmarks.spark import analyse, archive, cluster, source
from benchmarks.spark.spark_harness import SIZES, SparkHarness, jdbc_jar, run_server, spark_session

CASES = {
    "write": source.write,
    "read": source.read,
    "archive": archive.run,
    "analyse": analyse.run,
    "skew": analyse.run_skewed,
    "files": analyse.run_files,
    "cluster": cluster.run,
}
# Only on request: it starts a cluster.
EXTRA_CASES = {"cluster"}
NOTE = (
    "Read the figures as ratios. Spark runs as local[2], with rows of 100 bytes. The JDBC writer is not "
    "atomic: a failed write may leave some of its rows. Its driver is in Debian's libpostgresql-jdbc-java; "
    "without it these rows are left out."
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument(
        "--case",
        action="append",
        choices=list(CASES),
        help="run only this case; repeatable; cluster runs only if it is named",
    )
    options.add_shared(
        parser,
        "spark",
        {
            "quick": "a tenth of the rows",
            "full": "five rounds, and an analysis of 100,000,000 attempts",
            "smoke": "a few seconds",
        },
    )
    options.add_output(parser, "spark", "cases")
    chosen = parser.parse_args(arguments)
    effort = dataclasses.replace(
        EFFORTS[chosen.effort], rounds=chosen.rounds or EFFORTS[chosen.effort].rounds
    )
    rows: list[Row] = []
    with (
        run_server(chosen.dsn, chosen.server) as server,
        tempfile.TemporaryDirectory(prefix="lonnymq-bench-") as directory,
        spark_session(jdbc_jar()) as spark,
    ):
        sql_before = results.sql_digest()
        harness = SparkHarness(
            Harness(server, effort), spark, Path(directory), SIZES[effort.name], jdbc_jar()
        )
        print(results.HEADING, flush=True)
        for name, case in CASES.items():
            if name in chosen.case if chosen.case else name not in EXTRA_CASES:
                for row in case(harness):
                    print(results.format_row(row), flush=True)
                    rows.append(dataclasses.replace(row, measured=results.current_conditions()))
        head = results.run_header(server, sql_before, {"effort": effort.name, "rounds": effort.rounds})
    if not chosen.no_write:
        content = head | {"note": NOTE, "rows": [results.row_json(row) for row in rows]}
        path = merge.write_results(chosen.output, content, merge_results if chosen.merge else None)
        print(f"written to {path}")
    return 1 if chosen.strict and not all(row.holds for row in rows) else 0


def merge_results(former: merge.Json, later: merge.Json) -> merge.Json:
    """Return the former run with the cases that the later one has measured, perhaps at another size."""
    merge.check_comparable(former, later, (*merge.MACHINE, merge.SQL))
    # Some cases have rows with names of their own.
    order = list(dict.fromkeys(row["case"] for row in (*former["rows"], *later["rows"])))
    return former | {"rows": merge.replace_rows(former["rows"], later["rows"], "case", order)}


if __name__ == "__main__":
    sys.exit(main())
