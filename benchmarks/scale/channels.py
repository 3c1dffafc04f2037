"""Many channels: their first turn, their space on disk, and their effect on active channels."""

import time
from collections.abc import Callable

import psycopg

from benchmarks import pages_touched
from benchmarks.contenders.lonnymq import LonnyMQ, LonnyMQSession
from benchmarks.harness import Median
from benchmarks.load import channel_names, measure_drain
from benchmarks.results import round_figure
from benchmarks.scale.effort import Effort
from benchmarks.server import Server

ACTIVE = 1_000
FIRST_BATCH = 500
BATCH = 100
WORKERS = 4
PROGRESS_S = 10
SPACE = """
    select pg_total_relation_size('lonnymq.channel') + pg_total_relation_size('lonnymq.turn')"""
Json = dict[str, object]


def run(server: Server, effort: Effort, progress: Callable[[str], None]) -> list[Json]:
    rows = []
    for count in effort.channels:
        progress(f"  channels: {count:,} ...")
        rows.append(measure(server, effort, count, progress))
        progress(f"  channels: {rows[-1]}")
    return rows


def measure(server: Server, effort: Effort, count: int, progress: Callable[[str], None]) -> Json:
    contender, channels = LonnyMQ(), channel_names(count)
    active = channels[:: max(1, count // ACTIVE)]
    with server.database() as dsn:
        contender.install(dsn)
        contender.fill(dsn, channels, count)
        first_s = first_turns(contender.session(dsn), count, progress)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("vacuum analyze")
            [(space,)] = connection.execute(SPACE).fetchall()
        rates = []
        for _ in range(effort.rounds):
            contender.fill(dsn, active, max(10_000, int(effort.window_s * 60_000)))
            rates.append(
                measure_drain(contender, dsn, workers=WORKERS, batch=BATCH, window_s=effort.window_s)
            )
        pages = pages_touched.per_dequeue_with_backlog(contender, dsn, active)
    return {
        "channels": count,
        "first_turns_per_s": round_figure(count / first_s),
        "messages_per_s": round_figure(Median(rates)),
        "rounds": [round_figure(rate) for rate in rates],
        "pages_per_dequeue": round_figure(pages),
        "bytes_per_channel": round_figure(int(space) / count),
    }


def first_turns(session: LonnyMQSession, count: int, progress: Callable[[str], None]) -> float:
    """Return the seconds in which one connection leases and completes the first message of each channel."""
    began_at = reported_at = time.monotonic()
    done = 0
    while done < count:
        leases = session.dequeue(FIRST_BATCH)
        if leases:
            session.complete(leases)
            done += len(leases)
        if time.monotonic() >= reported_at + PROGRESS_S:
            reported_at = time.monotonic()
            progress(f"  channels: {done:,} of {count:,} had their first turn")
    session.close()
    return time.monotonic() - began_at
