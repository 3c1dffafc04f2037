"""The space of an attempt in history; a day's volume is that multiplied by the day's attempts."""

from collections.abc import Callable

import psycopg

from benchmarks.contenders import LonnyMQ
from benchmarks.load import channel_names, measure_drain
from benchmarks.results import round_figure
from benchmarks.scale.effort import Effort
from benchmarks.server import Server

SPACE = """
    select count(*), (select sum(pg_total_relation_size(p.relid)) from pg_partition_tree('lonnymq.history') p)
    from lonnymq.history"""
Json = dict[str, object]


def run(server: Server, effort: Effort, progress: Callable[[str], None]) -> list[Json]:
    rows = []
    for mode in ("metadata", "full"):
        rows.append(measure(server, mode, max(1_000, effort.messages)))
        progress(f"  history: {rows[-1]}")
    return rows


def measure(server: Server, mode: str, messages: int) -> Json:
    contender = LonnyMQ(history=mode)
    with server.database() as dsn:
        contender.install(dsn)
        contender.fill(dsn, channel_names(100), messages)
        measure_drain(contender, dsn, workers=1, batch=100, window_s=3_600)
        with psycopg.connect(dsn, autocommit=True) as connection:
            [(attempts, space)] = connection.execute(SPACE).fetchall()
    return {
        "mode": mode,
        "attempts": attempts,
        "bytes_per_attempt": round_figure(int(space) / max(1, attempts)),
    }
