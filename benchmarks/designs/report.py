"""The measurements as results/designs.json."""

import statistics
from dataclasses import dataclass

from benchmarks.bench import Figure, Row
from benchmarks.designs.crowd import PUBLISHED, Throughput
from benchmarks.designs.design import FAMILIES, Design
from benchmarks.designs.measure import Measurement
from benchmarks.results import as_json, rounded

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


def flat_rows(all_series: list[Series]) -> list[Row]:
    """Return what must hold: the largest table is picked from as quickly as the smallest."""
    rows = []
    for series in all_series:
        if series.design.is_ours and len(series.sizes) > 1:
            small, large = min(series.sizes), max(series.sizes)
            rows.append(
                Row(
                    case=series.design.name,
                    title=f"{series.design.case}: a pick with {large:,} rows against {small:,}",
                    against=f"{small:,} rows",
                    unit="ms",
                    value=Figure(matched(series.median_ms(large), len(series.sizes[small]))),
                    reference=series.median_ms(small),
                    at_most=FLAT,
                    note=f"{pages(series, small)} → {pages(series, large)} pages",
                )
            )
    return rows


def matched(figure: Figure, rounds: int) -> list[float]:
    """Return as many rounds as the other size has: the largest is measured less often."""
    return [figure.rounds[number % len(figure.rounds)] for number in range(rounds)]


def pages(series: Series, rows: int) -> int:
    return round(statistics.median(measurement.plan.pages for measurement in series.sizes[rows]))


def document(all_series: list[Series], throughputs: list[Throughput]) -> dict[str, object]:
    return {
        "note": NOTE,
        "families": FAMILIES,
        "designs": [series_json(series) for series in all_series],
        "flat": [as_json(row) for row in flat_rows(all_series)],
        "crowd": {"published": PUBLISHED, "rows": [throughput_json(one) for one in throughputs]},
    }


def series_json(series: Series) -> dict[str, object]:
    design = series.design
    return {
        "name": design.name,
        "title": design.title,
        "families": list(design.families),
        "case": design.case,
        "published": design.published,
        "is_ours": design.is_ours,
        "sizes": [size_json(measurements) for _, measurements in sorted(series.sizes.items())],
    }


def size_json(measurements: list[Measurement]) -> dict[str, object]:
    medians = [measurement.median_ms for measurement in measurements]
    every = sorted(pick_ms for measurement in measurements for pick_ms in measurement.pick_ms)
    last = measurements[-1]
    return {
        "rows": last.rows,
        "pick_ms": rounded(statistics.median(medians)),
        "pick_ms_p95": rounded(every[min(len(every) - 1, int(len(every) * 0.95))]),
        "pick_ms_rounds": [rounded(median) for median in medians],
        "picks": len(every),
        "pages": last.plan.pages,
        "load_rows_per_s": [rounded(rate) for rate in last.load_rows_per_s],
        "table_bytes": last.table_bytes,
        "index_bytes": last.index_bytes,
        "plan": list(last.plan.lines),
    }


def throughput_json(throughput: Throughput) -> dict[str, object]:
    return {
        "design": throughput.design,
        "batch": throughput.batch,
        "created_per_s": rounded(statistics.median(throughput.created)),
        "completed_per_s": rounded(throughput.median_completed),
        "completed_per_s_rounds": [rounded(rate) for rate in throughput.completed],
    }
