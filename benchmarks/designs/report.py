"""Formats the measurements for results/designs.json."""

import dataclasses
import itertools
import statistics
from dataclasses import dataclass
from typing import Any

from benchmarks.designs.contention import PUBLISHED, Throughput
from benchmarks.designs.design import FAMILIES, Design
from benchmarks.designs.measure import Measurement
from benchmarks.harness import Median, Row
from benchmarks.results import round_figure, row_json

Json = dict[str, Any]
MAX_GROWTH = 1.5
NOTE = (
    "A pick finds, locks and leases the next message. Its time is that seen by a client with one connection "
    "over a local socket, with prepared statements and synchronous_commit off, after VACUUM ANALYZE. Each "
    "design is in its worst case, which is stated. Pages are the 8 kB blocks that one pick touches; they do "
    "not depend on the machine's load."
)


@dataclass(frozen=True)
class Series:
    """The measurements of a design: for each size, one per round."""

    design: Design
    sizes: dict[int, list[Measurement]]

    def median_ms(self, rows: int) -> Median:
        return Median([measurement.median_ms for measurement in self.sizes[rows]])


def flat_rows(designs: list[Json]) -> list[Row]:
    """Return the rows that check that picks from the largest table are as fast as from the smallest."""
    rows = []
    for design in designs:
        if design["is_ours"] and len(design["sizes"]) > 1:
            small, *_, large = design["sizes"]
            # The largest size may have fewer rounds, which are then compared repeatedly.
            large_rounds = itertools.cycle(large["pick_ms_rounds"])
            rows.append(
                Row(
                    case=design["name"],
                    title=f"{design['case']}: pick at {large['rows']:,} rows compared with {small['rows']:,}",
                    against=f"{small['rows']:,} rows",
                    unit="ms",
                    value=Median([next(large_rounds) for _ in small["pick_ms_rounds"]]),
                    reference=Median(small["pick_ms_rounds"]),
                    at_most=MAX_GROWTH,
                    note=f"{small['pages']} → {large['pages']} pages",
                )
            )
    return rows


def document(all_series: list[Series], throughputs: list[Throughput], effort: str, sql: str) -> Json:
    designs = [series_json(series, {"effort": effort, "sql": sql}) for series in all_series]
    return {
        "note": NOTE,
        "families": FAMILIES,
        "designs": designs,
        "flat": [row_json(row) for row in flat_rows(designs)],
        "contention": {"published": PUBLISHED, "rows": [throughput_json(one) for one in throughputs]},
    }


def series_json(series: Series, run: Json) -> Json:
    design = series.design
    return {
        "name": design.name,
        "title": design.title,
        "families": list(design.families),
        "case": design.case,
        "published": design.published,
        "is_ours": design.is_ours,
        "sizes": [size_json(measurements) | run for _, measurements in sorted(series.sizes.items())],
    }


def size_json(measurements: list[Measurement]) -> Json:
    medians = [measurement.median_ms for measurement in measurements]
    all_picks = sorted(pick_ms for measurement in measurements for pick_ms in measurement.pick_ms)
    last = measurements[-1]
    return {
        "rows": last.rows,
        "pick_ms": round_figure(statistics.median(medians)),
        "pick_ms_p95": round_figure(all_picks[min(len(all_picks) - 1, int(len(all_picks) * 0.95))]),
        "pick_ms_rounds": [round_figure(median) for median in medians],
        "picks": len(all_picks),
        "pages": round(statistics.median(measurement.plan.pages for measurement in measurements)),
        "load_rows_per_s": [round_figure(rate) for rate in last.load_rows_per_s],
        "table_bytes": last.table_bytes,
        "index_bytes": last.index_bytes,
        "plan": list(last.plan.lines),
        "took_s": {name: round_figure(took_s) for name, took_s in last.took_s.items()},
        **dataclasses.asdict(last.measured),
    }


def throughput_json(throughput: Throughput) -> Json:
    return {
        "design": throughput.design,
        "batch": throughput.batch,
        "created_per_s": round_figure(statistics.median(throughput.created)),
        "completed_per_s": round_figure(throughput.median_completed),
        "completed_per_s_rounds": [round_figure(rate) for rate in throughput.completed],
    }
