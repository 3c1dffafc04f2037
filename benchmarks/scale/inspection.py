"""The pages that inspection touches, by number of channels, each with four messages, few of them leased."""

from collections.abc import Callable

import psycopg

from benchmarks.contenders.lonnymq import LonnyMQ
from benchmarks.designs.pick_plan import pages_of
from benchmarks.load import channel_names
from benchmarks.results import round_figure
from benchmarks.scale.effort import Effort
from benchmarks.server import Server

CALLS = {
    "queue_pulse": "queue_pulse()",
    "channel_overdue": "channel_overdue(20)",
    "channel_busiest": "channel_busiest(20)",
    "channel_explain": "channel_explain('{channel}')",
    "channel_page": "channel_page('', '', 50)",
    "message_page": "message_page()",
    "dead_page": "dead_page()",
    "dead_groups": "dead_groups()",
    "message_attempts": "message_attempts(7)",
    "audit_page": "audit_page()",
    "queue_count": "queue_count(false)",
    # With this pulse, what the exporter reads.
    "queue_pulse_1000": "queue_pulse(1000)",
    "queue_tables": "queue_tables()",
    "cron_overdue": "cron_overdue()",
    "history_lag": "history_lag()",
    "worker_status": "worker_status",
    "channel_list": "channel_list(array['{channel}'])",
    "queue_status": "queue_status()",
}
MESSAGES_PER_CHANNEL = 4
LEASED = 400
Json = dict[str, object]


def run(server: Server, effort: Effort, progress: Callable[[str], None]) -> list[Json]:
    rows = []
    for count in effort.channels:
        rows.append(measure(server, count))
        progress(f"  inspection: {rows[-1]}")
    return rows


def measure(server: Server, count: int) -> Json:
    contender, channels = LonnyMQ(), channel_names(count)
    with server.database() as dsn:
        contender.install(dsn)
        contender.fill(dsn, channels, count * MESSAGES_PER_CHANNEL)
        session = contender.session(dsn)
        for _ in range(LEASED // 100):
            session.dequeue(100)
        session.close()
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("vacuum analyze")
            pages = {
                name: min(_pages(connection, call.format(channel=channels[0])) for _ in range(3))
                for name, call in CALLS.items()
            }
    return {"channels": count, "messages": count * MESSAGES_PER_CHANNEL} | {
        name: round_figure(found) for name, found in pages.items()
    }


def _pages(connection: psycopg.Connection[object], call: str) -> int:
    statement = f"explain (analyze, buffers, timing off, format json) select * from lonnymq.{call}"
    found = connection.execute(statement.encode()).fetchone()
    assert found is not None
    return pages_of(found[0][0]["Plan"])  # type: ignore[index]
