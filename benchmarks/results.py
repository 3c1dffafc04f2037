"""Formats results as a table for the terminal and as JSON for results/*.json."""

import dataclasses
import datetime
import hashlib
import json
import os
import platform
from pathlib import Path

import psycopg

from benchmarks.contenders.contender import PAYLOAD
from benchmarks.contenders.install_lonnymq import SQL
from benchmarks.harness import Harness, Row, RunConditions
from benchmarks.server import Server

# The machine's load before the benchmark adds its own.
LOAD = os.getloadavg()[0]
COLUMNS = ("case", 28), ("against", 12), ("value", -12), ("reference", -12), ("ratio", -8), ("bound", -8)
HEADING = (
    " ".join(f"{name:{'<' if width > 0 else '>'}{abs(width)}}" for name, width in COLUMNS)
    + "  holds     rounds"
)
NOTE = (
    "Read the figures as ratios. Create and complete run with synchronous_commit on, dequeue with it off: "
    "LonnyMQ by p_is_durable => false, the others on a second connection."
)


def format_row(row: Row) -> str:
    reference = format_figure(row.reference) if row.reference is not None else "-"
    ratio = f"{row.ratio:.2f}" if row.ratio is not None else "-"
    bound = _bound(row)
    answer = ("yes" if row.holds else "NO") + ("" if row.is_certain else ", noisy")
    holds = answer if bound else ""
    spread = f"{min(row.ratios):.2f} to {max(row.ratios):.2f}" if len(row.ratios) > 1 else ""
    return (
        f"{row.case:28} {row.against or '-':12} {format_figure(row.value):>12} {reference:>12} {ratio:>8} "
        f"{bound:>8}  {holds:9} {spread:12} {row.note}"
    ).rstrip()


def _bound(row: Row) -> str:
    if row.at_least is not None:
        return f"≥ {row.at_least:g}"
    return "" if row.at_most is None else f"≤ {row.at_most:g}"


def format_figure(value: float) -> str:
    return f"{value:,.2f}" if 0 < abs(value) < 10 else f"{value:,.0f}"


def save(path: Path, content: dict[str, object]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def sql_digest() -> str:
    """Return a digest of the measured SQL, which is read at each installation and may be edited meanwhile."""
    digest = hashlib.sha256()
    for file in sorted(SQL.rglob("*.sql")):
        digest.update(file.relative_to(SQL).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def document(rows: list[Row], harness: Harness, sql_before: str) -> dict[str, object]:
    effort = {"effort": harness.effort.name, "rounds": harness.effort.rounds}
    return {
        **run_header(harness.server, sql_before, effort),
        "note": NOTE,
        "rows": [row_json(row) for row in rows],
    }


def current_conditions() -> RunConditions:
    return RunConditions(now(), round(os.getloadavg()[0], 2))


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def run_header(server: Server, sql_before: str, effort: dict[str, object]) -> dict[str, object]:
    """Return when, where and with what a run measured: the head of every results file."""
    settings = server.settings()
    return {
        "date": now(),
        "machine": {
            "cpu": cpu(),
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "load": LOAD,
        },
        "versions": {
            "postgresql": settings.pop("server_version"),
            "python": platform.python_version(),
            "psycopg": psycopg.__version__,
            "sql": sql_before,
            "is_sql_unchanged": sql_digest() == sql_before,
        },
        "settings": {**effort, "payload_bytes": len(PAYLOAD), **settings},
    }


def row_json(row: Row) -> dict[str, object]:
    bounds = {"at_least": row.at_least, "at_most": row.at_most}
    bound = {name: value for name, value in bounds.items() if value is not None}
    measured = {} if row.measured is None else dataclasses.asdict(row.measured)
    return {
        "case": row.case,
        "title": row.title,
        "against": row.against,
        "value": round_figure(row.value),
        "reference": round_figure(row.reference),
        "ratio": round_figure(row.ratio),
        **bound,
        "holds": row.holds,
        "is_certain": row.is_certain,
        "rounds": [round_figure(ratio) for ratio in row.ratios],
        "unit": row.unit,
        "note": row.note,
        **measured,
    }


def round_figure(value: float | None) -> float | None:
    if value is None:
        return None
    return round(value) if abs(value) >= 100 else round(value, 3)


def cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for text in cpuinfo.read_text().splitlines():
            if text.startswith("model name"):
                return text.partition(":")[2].strip()
    return platform.processor()
