"""Tenants share a queue: one noisy, ten small, one capped, one throttled, one failing; a worker is killed.

Starts its own PostgreSQL and four worker processes, monitors them from separate sessions, and compares what
is expected with what was observed. Exits with 1 if they differ. Finally, Spark writes a report about the run.
"""

import os
import sys
import time
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

import lonnymq
from examples.demo import report, tenants
from examples.demo.checks import Check, checks
from examples.demo.dashboard import dashboard
from examples.demo.fleet import Fleet
from examples.demo.monitor import Monitor
from lonnymq import Queue

TIMEOUT_S = 50.0


def main() -> int:
    with lonnymq.embedded() as server, Queue(server.dsn) as queue:
        workers, messages = tenants.PROCESSES, tenants.TOTAL
        print(f"PostgreSQL {server.version} is running; {workers} worker processes, {messages:,} messages")
        tenants.prepare(queue)
        tenants.fill(queue)
        with dashboard(server.dsn) as address:
            print(f"{address} while the demo runs" if address else "the dashboard could not be started")
            with Fleet(server.dsn) as fleet, Monitor(queue, server.dsn) as monitor:
                abandoned = run(fleet, monitor)
        with psycopg.connect(server.dsn) as connection:

            def ask(query: str, *values: Any) -> Any:
                row = connection.execute(query, values).fetchone()
                return row[0] if row else None

            results = list(checks(queue, ask, monitor, fleet, abandoned))
            code = print_checks(results, monitor.elapsed)
        report.write_report(server.dsn)
        return code


def run(fleet: Fleet, monitor: Monitor) -> set[int]:
    """Wait until all messages have ended, kill a worker meanwhile, and return the messages that it held."""
    abandoned: set[int] = set()
    while time.monotonic() - monitor.began < TIMEOUT_S:
        groups = monitor.show()
        if sum(group.ended for group in groups.values()) >= tenants.TOTAL:
            break
        if not abandoned and groups["noisy"].ended >= tenants.NOISY // 5:
            abandoned = fleet.kill_one()
            monitor.note(f"a worker process was killed while it held {len(abandoned)} messages")
    return abandoned


def print_checks(results: list[Check], elapsed: float) -> int:
    """Print what was expected next to what was observed, and return the exit code."""
    title = f"{tenants.TOTAL:,} messages in {elapsed:.1f} s, including the start of the workers"
    table = Table(title=title, title_justify="left")
    for title in ("", "expected", "observed"):
        table.add_column(title)
    for check in results:
        mark = "[green]ok[/]" if check.holds else "[bold red]FAILED[/]"
        table.add_row(mark, check.expected, check.observed)
    Console(width=None if sys.stdout.isatty() else 160).print("", table)
    return 0 if all(check.holds for check in results) else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
