"""Tenants share a queue: a noisy, ten small, a capped, a throttled and a failing one; and a worker dies.

Starts its own PostgreSQL and four worker processes, watches them from separate sessions, and compares what
was promised with what was seen. Ends with 1 if they differ. At last Spark tells the whole run on one page.
"""

import os
import sys
import time
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

import lonnymq
from examples.demo import pages, tenants
from examples.demo.fleet import Fleet
from examples.demo.promises import Finding, findings
from examples.demo.watch import Watch
from lonnymq import Queue

GIVE_UP_S = 50.0


def main() -> int:
    with lonnymq.embedded() as server, Queue(server.dsn) as queue:
        workers, messages = tenants.PROCESSES, tenants.TOTAL
        print(f"PostgreSQL {server.version} has started; {workers} workers, {messages:,} messages")
        tenants.prepare(queue)
        tenants.fill(queue)
        with Fleet(server.dsn) as fleet, Watch(queue, server.dsn) as watch:
            abandoned = run(fleet, watch)
        with psycopg.connect(server.dsn) as connection:

            def ask(query: str, *values: Any) -> Any:
                row = connection.execute(query, values).fetchone()
                return row[0] if row else None

            code = report(list(findings(queue, ask, watch, fleet, abandoned)), watch.elapsed)
        pages.tell(server.dsn)
        return code


def run(fleet: Fleet, watch: Watch) -> set[int]:
    """Wait until everything has ended; on the way, kill a worker. Return the messages it left behind."""
    abandoned: set[int] = set()
    while time.monotonic() - watch.began < GIVE_UP_S:
        groups = watch.show()
        if sum(group.ended for group in groups.values()) >= tenants.TOTAL:
            break
        if not abandoned and groups["noisy"].ended >= tenants.NOISY // 5:
            abandoned = fleet.kill_one()
            watch.note(f"a worker was killed with {len(abandoned)} messages in its hands")
    return abandoned


def report(found: list[Finding], elapsed: float) -> int:
    """Print what was promised beside what was seen."""
    title = f"{tenants.TOTAL:,} messages in {elapsed:.1f} s, the start of the workers included"
    table = Table(title=title, title_justify="left")
    for title in ("", "promised", "seen"):
        table.add_column(title)
    for finding in found:
        mark = "[green]ok[/]" if finding.holds else "[bold red]NO[/]"
        table.add_row(mark, finding.promised, finding.seen)
    Console(width=None if sys.stdout.isatty() else 160).print("", table)
    return 0 if all(finding.holds for finding in found) else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
