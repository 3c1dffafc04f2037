"""The reference designs and ours, each in its worst case, at growing sizes: picks, plans, loads, space."""

import argparse
import dataclasses
import sys
import time

from benchmarks import bench, merging, options, results
from benchmarks.designs import crowd, report
from benchmarks.designs.design import Design, catalogue
from benchmarks.designs.measure import EFFORTS, Effort, measure
from benchmarks.designs.merged import merged
from benchmarks.designs.report import Series
from benchmarks.server import Server, serve

# What takes that long is not repeated: its figure is large, and its noise is not.
ONCE_FROM_S = 60.0
ALL = {
    "quick": "10k and 100k rows, in under 5 minutes",
    "full": "10k to 10M rows",
    "smoke": "tiny tables: seconds",
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
    with serve(chosen.dsn, chosen.server, is_warmed=chosen.effort != "smoke") as server:
        sql_before = results.sql_digest()
        harness = bench.Bench(server, dataclasses.replace(bench.EFFORTS[chosen.effort], rounds=effort.rounds))
        all_series = measured(server, designs, effort, harness)
        throughputs = [] if chosen.design else crowd.run(harness)
        head = results.circumstances(
            server, sql_before, {"effort": effort.name, "rounds": effort.rounds, "rows": list(effort.sizes)}
        )
    found = report.document(all_series, throughputs, effort.name, sql_before)
    flat = report.flat_rows(found["designs"])
    show(all_series, throughputs, flat)
    if not chosen.no_write:
        print(f"written to {merging.write(chosen.output, head | found, merged if chosen.merge else None)}")
    return 1 if chosen.strict and not all(row.holds for row in flat) else 0


def measured(server: Server, designs: list[Design], effort: Effort, harness: bench.Bench) -> list[Series]:
    """Measure all designs in turns, because the machine's mood changes; its sizes one right after the other.

    They are compared with each other, and minutes between them would be compared as well.
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
                if time.monotonic() - began_at > ONCE_FROM_S:
                    slow.add((series.design.name, rows))
        harness.progress(f"  round {number + 1} of {effort.rounds} is done")
    return all_series


def show(all_series: list[Series], throughputs: list[crowd.Throughput], flat: list[bench.Row]) -> None:
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
        print(results.line(row))


def parse(arguments: list[str] | None, designs: list[Design]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.designs", description=__doc__)
    parser.add_argument(
        "--design",
        action="append",
        choices=[design.name for design in designs],
        metavar="NAME",
        help="measure only this; repeatable",
    )
    parser.add_argument("--list", action="store_true", help="name the designs and end")
    options.add_shared(parser, "designs", ALL)
    options.add_output(parser, "designs", "designs and sizes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
