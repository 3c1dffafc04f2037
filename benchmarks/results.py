"""The figures as a table on the terminal and as results/core.json."""

import datetime
import json
import os
import platform
from pathlib import Path

import psycopg

from benchmarks.bench import Bench, Row
from benchmarks.contenders.contender import PAYLOAD

PATH = Path(__file__).resolve().parent / "results" / "core.json"
HEADING = f"{'case':28} {'against':12} {'value':>12} {'reference':>12} {'ratio':>8} {'bound':>8}  holds"
NOTE = (
    "Read them as ratios. create and complete with synchronous_commit on; dequeue with it off for every "
    "contender: ours by p_is_durable => false, the others on a connection of their own that has it off."
)


def line(row: Row) -> str:
    bound = f"≥ {row.at_least:g}" if row.at_least is not None else f"≤ {row.at_most:g}"
    reference = f"{row.reference:,.0f}" if row.reference is not None else "-"
    ratio = f"{row.ratio:.2f}" if row.ratio is not None else "-"
    return (
        f"{row.case:28} {row.against or '-':12} {row.value:12,.0f} {reference:>12} {ratio:>8} {bound:>8}  "
        f"{'yes' if row.holds else 'NO'}{'  ' + row.note if row.note else ''}"
    )


def write(rows: list[Row], bench: Bench, path: Path = PATH) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document(rows, bench), indent=2, ensure_ascii=False) + "\n")
    return path


def document(rows: list[Row], bench: Bench) -> dict[str, object]:
    settings = bench.server.settings()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {
            "postgresql": settings.pop("server_version"),
            "python": platform.python_version(),
            "psycopg": psycopg.__version__,
        },
        "settings": {"effort": bench.effort.name, "payload_bytes": len(PAYLOAD), **settings},
        "note": NOTE,
        "rows": [as_json(row) for row in rows],
    }


def as_json(row: Row) -> dict[str, object]:
    bound = {"at_least": row.at_least} if row.at_least is not None else {"at_most": row.at_most}
    return {
        "case": row.case,
        "title": row.title,
        "against": row.against,
        "value": rounded(row.value),
        "reference": rounded(row.reference),
        "ratio": rounded(row.ratio),
        **bound,
        "holds": row.holds,
        "unit": row.unit,
        "note": row.note,
    }


def rounded(figure: float | None) -> float | None:
    if figure is None:
        return None
    return round(figure) if abs(figure) >= 100 else round(figure, 3)


def cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for text in cpuinfo.read_text().splitlines():
            if text.startswith("model name"):
                return text.partition(":")[2].strip()
    return platform.processor()
