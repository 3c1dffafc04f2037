"""The measurements as results/designs.json."""

import dataclasses
import itertools
import statistics
from dataclasses import dataclass
from typing import Any

from benchmarks.bench import Figure, Row
from benchmarks.designs.crowd import PUBLISHED, Throughput
from benchmarks.designs.design import FAMILIES, Design
from benchmarks.designs.measure import Measurement
from benchmarks.results import as_json, rounded

Json = dict[str, Any]
FLAT = 1.5
NOTE = (
    "A pick finds, locks and leases the next message, as its client sees it: one connection on a local "
    "socket, prepared, synchronous_commit off, after VACUUM ANALYZE. Each design is in its worst case, which "
    "is named. Pages are blocks of 8 kB that one pick touches, whatever else the machine does."
)


@dataclass(frozen=True)
class Series:
    """One design at all sizes; at each, one measurement per round."""

    design: Design
    sizes: dict[int, list[Measurement]]

    def median_ms(self, rows: int) -> Figure:
        return Figure([measurement.median_ms for measurement in self.sizes[rows]])


def flat_rows(designs: list[Json]) -> list[Row]:
    """Return what must hold: the largest table is picked from as quickly as the smallest."""
    rows = []
    for design in designs:
        if design["is_ours"] and len(design["sizes"]) > 1:
            small, *_, large = design["sizes"]
            # The largest is measured less often: its rounds are compared again.
            again = itertools.cycle(large["pick_ms_rounds"])
            rows.append(
                Row(
                    case=design["name"],
                    title=f"{design['case']}: a pick with {large['rows']:,} rows against {small['rows']:,}",
                    against=f"{small['rows']:,} rows",
                    unit="ms",
                    value=Figure([next(again) for _ in small["pick_ms_rounds"]]),
                    reference=Figure(small["pick_ms_rounds"]),
                    at_most=FLAT,
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
        "flat": [as_json(row) for row in flat_rows(designs)],
        "crowd": {"published": PUBLISHED, "rows": [throughput_json(one) for one in throughputs]},
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
    every = sorted(pick_ms for measurement in measurements for pick_ms in measurement.pick_ms)
    last = measurements[-1]
    return {
        "rows": last.rows,
        "pick_ms": rounded(statistics.median(medians)),
        "pick_ms_p95": rounded(every[min(len(every) - 1, int(len(every) * 0.95))]),
        "pick_ms_rounds": [rounded(median) for median in medians],
        "picks": len(every),
        "pages": round(statistics.median(measurement.plan.pages for measurement in measurements)),
        "load_rows_per_s": [rounded(rate) for rate in last.load_rows_per_s],
        "table_bytes": last.table_bytes,
        "index_bytes": last.index_bytes,
        "plan": list(last.plan.lines),
        "took_s": {name: rounded(took_s) for name, took_s in last.took_s.items()},
        **dataclasses.asdict(last.measured),
    }


def throughput_json(throughput: Throughput) -> Json:
    return {
        "design": throughput.design,
        "batch": throughput.batch,
        "created_per_s": rounded(statistics.median(throughput.created)),
        "completed_per_s": rounded(throughput.median_completed),
        "completed_per_s_rounds": [rounded(rate) for rate in throughput.completed],
    }
