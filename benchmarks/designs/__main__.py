"""Measures the reference designs and LonnyMQ, each in its worst case, at growing sizes."""

import argparse
import dataclasses
import sys
import time

from benchmarks import merge, options, results
from benchmarks.designs import contention, report
from benchmarks.designs.design import Design, catalogue
from benchmarks.designs.measure import EFFORTS, Effort, measure
from benchmarks.designs.merge_results import merge_results
from benchmarks.designs.report import Series
from benchmarks.harness import EFFORTS as CORE_EFFORTS
from benchmarks.harness import Harness, Row
from benchmarks.server import Server, run_server

# Measurements that take this long are not repeated: relative to them, noise is small.
MEASURE_ONCE_FROM_S = 60.0
EFFORT_HELP = {
    "quick": "10k and 100k rows, in under 5 minutes",
    "full": "10k to 10M rows",
    "smoke": "tiny tables, a few seconds",
}


def main(arguments: list[str] | None = None) -> int:
    designs = catalogue()
    chosen = parse(arguments, designs)
    if chosen.list:
        print("\n".join(f"{design.name:24} {design.title}" for design in designs))
        return 0
    effort = EFFORTS[chosen.effort]
    effort = dataclasses.replace(effort, rounds=chosen.rounds or effort.rounds)
    designs = [design for design in designs if not chosen.design or design.name in chosen.design]
    with run_server(chosen.dsn, chosen.server, is_warmed=chosen.effort != "smoke") as server:
        sql_before = results.sql_digest()
        harness = Harness(server, dataclasses.replace(CORE_EFFORTS[chosen.effort], rounds=effort.rounds))
        all_series = measure_designs(server, designs, effort, harness)
        throughputs = [] if chosen.design else contention.run(harness)
        head = results.run_header(
            server, sql_before, {"effort": effort.name, "rounds": effort.rounds, "rows": list(effort.sizes)}
        )
    found = report.document(all_series, throughputs, effort.name, sql_before)
    flat = report.flat_rows(found["designs"])
    show(all_series, throughputs, flat)
    if not chosen.no_write:
        path = merge.write_results(chosen.output, head | found, merge_results if chosen.merge else None)
        print(f"written to {path}")
    return 1 if chosen.strict and not all(row.holds for row in flat) else 0


def measure_designs(server: Server, designs: list[Design], effort: Effort, harness: Harness) -> list[Series]:
    """Measure all designs in turns, because the machine's speed varies.

    The sizes of a design are compared with each other, so they are measured right after one another.
    """
    all_series = [Series(design, {}) for design in designs]
    slow: set[tuple[str, int]] = set()
    for number in range(effort.rounds):
        for series in all_series:
            for rows in effort.sizes:
                if (series.design.name, rows) in slow:
                    continue
                began_at = time.monotonic()
                measurement = measure(server, series.design, rows, effort, harness.progress)
                series.sizes.setdefault(rows, []).append(measurement)
                if time.monotonic() - began_at > MEASURE_ONCE_FROM_S:
                    slow.add((series.design.name, rows))
        harness.progress(f"  round {number + 1} of {effort.rounds} is done")
    return all_series


def show(all_series: list[Series], throughputs: list[contention.Throughput], flat: list[Row]) -> None:
    sizes = sorted(all_series[0].sizes)
    print(f"{'pick, ms, at':24}" + "".join(f"{rows:>14,}" for rows in sizes) + "   worst case")
    for series in all_series:
        figures = "".join(f"{series.median_ms(rows):14,.2f}" for rows in sizes)
        print(f"{series.design.name:24}{figures}   {series.design.case}")
    for throughput in throughputs:
        print(
            f"8 producers, 8 consumers, batch {throughput.batch:3}: {throughput.design:12}"
            f" {throughput.median_completed:10,.0f} messages/s"
        )
    print(results.HEADING)
    for row in flat:
        print(results.format_row(row))


def parse(arguments: list[str] | None, designs: list[Design]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.designs", description=__doc__)
    parser.add_argument(
        "--design",
        action="append",
        choices=[design.name for design in designs],
        metavar="NAME",
        help="measure only this design; repeatable",
    )
    parser.add_argument("--list", action="store_true", help="list the designs and exit")
    options.add_shared(parser, "designs", EFFORT_HELP)
    options.add_output(parser, "designs", "designs and sizes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
