"""Measure what a create costs a tenant, and that tenants cost a producer nothing.

    python -m benchmarks.tenant_costs [--rounds N] [--dsn DSN]

Every variant has a session of its own. They take turns, 200 creates at a time, so that a slow moment of the
machine meets all of them. Printed is the median of the backend's CPU time per create.
"""

import argparse
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

import lonnymq

CREATES_PER_READING = 200
WARM_UP_ROUNDS = 2
GRANTS = 10_000
CREATE = "select * from {}.message_create('{}', 'x')"
TENANT_CREATE = "select * from lonnymq.tenant_create('{}', 'x')"


class Variant:
    """One session that creates messages in one way."""

    def __init__(self, dsn: str, title: str, statement: str, role: str | None = None) -> None:
        self.title = title
        self._statement = statement
        self.connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=0)
        if role:
            self.connection.execute(f"set role {role}".encode())
        self._cpu = Path(f"/proc/{self.connection.info.backend_pid}/schedstat")
        self.readings: list[float] = []

    def read(self, is_kept: bool) -> None:
        before = int(self._cpu.read_text().split()[0])
        for _ in range(CREATES_PER_READING):
            self.connection.execute(self._statement.encode())
        if is_kept:
            spent_us = (int(self._cpu.read_text().split()[0]) - before) / 1000
            self.readings.append(spent_us / CREATES_PER_READING)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--dsn", help="an empty database; default: a private server")
    options = parser.parse_args()
    with open_server(options.dsn) as dsn:
        with (
            lonnymq.Queue(dsn, schema="alone") as alone,
            lonnymq.Queue(dsn) as queue,
            psycopg.connect(dsn) as owner,
        ):
            alone.install()
            queue.install()
            owner.execute("create role bench_tenant")
            owner.commit()
            granted = ["one", "limited", *(f"c{number}" for number in range(GRANTS - 2))]
            queue.grant("bench_tenant", "tenant", channels=granted, prefix="p/")
            for channel in ("limited", "producers"):
                queue.channel(channel).set(max_size=1_000_000_000)
        variants = [
            Variant(dsn, "a producer, in a queue without tenants", CREATE.format("alone", "two")),
            Variant(dsn, f"a producer, in a queue with {GRANTS:,} grants", CREATE.format("lonnymq", "two")),
            Variant(dsn, "a tenant, in a channel", TENANT_CREATE.format("one"), "bench_tenant"),
            Variant(dsn, "a tenant, under a prefix", TENANT_CREATE.format("p/one"), "bench_tenant"),
            Variant(dsn, "a producer, with max_size", CREATE.format("lonnymq", "producers")),
            Variant(dsn, "a tenant, with max_size", TENANT_CREATE.format("limited"), "bench_tenant"),
        ]
        for round_ in range(options.rounds + WARM_UP_ROUNDS):
            for variant in variants:
                variant.read(is_kept=round_ >= WARM_UP_ROUNDS)
        for variant in variants:
            variant.connection.close()
            print(f"{statistics.median(variant.readings):7.1f} µs  {variant.title}")


@contextmanager
def open_server(dsn: str | None) -> Iterator[str]:
    if dsn:
        yield dsn
        return
    with lonnymq.embedded() as server:
        yield server.dsn


if __name__ == "__main__":
    main()
