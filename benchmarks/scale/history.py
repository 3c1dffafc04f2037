"""The space of a remembered attempt; a day's volume is that times the day's attempts."""

from collections.abc import Callable

import psycopg

from benchmarks.contenders import Ours
from benchmarks.load import channel_names, drained
from benchmarks.results import rounded
from benchmarks.scale.effort import Effort
from benchmarks.server import Server

SPACE = """
    select count(*), (select sum(pg_total_relation_size(p.relid)) from pg_partition_tree('lonnymq.history') p)
    from lonnymq.history"""
Json = dict[str, object]


def run(server: Server, effort: Effort, progress: Callable[[str], None]) -> list[Json]:
    found = []
    for mode in ("metadata", "full"):
        found.append(measure(server, mode, max(1_000, effort.messages)))
        progress(f"  history: {found[-1]}")
    return found


def measure(server: Server, mode: str, messages: int) -> Json:
    contender = Ours(history=mode)
    with server.database() as dsn:
        contender.install(dsn)
        contender.fill(dsn, channel_names(100), messages)
        drained(contender, dsn, workers=1, batch=100, window_s=3_600)
        with psycopg.connect(dsn, autocommit=True) as connection:
            [(attempts, space)] = connection.execute(SPACE).fetchall()
    return {"mode": mode, "attempts": attempts, "bytes_per_attempt": rounded(int(space) / max(1, attempts))}
