"""The latency from creating a message to its dequeue in a waiting worker, compared with LISTEN/NOTIFY."""

import random
import statistics
import struct
import time
from functools import partial

from benchmarks import parallel
from benchmarks.contenders import LonnyMQ
from benchmarks.contenders.contender import LEASE_MS, PAYLOAD, Wire
from benchmarks.harness import Case, Harness, Row
from benchmarks.parallel import StartBarrier

TITLE = "idle wake-up: create to dequeue in a waiting worker, p50"
NAME = "wake-up"
# Both processes read the same monotonic clock; the message contains the time of its creation.
STAMP = struct.Struct(">q")


def run(harness: Harness) -> list[Row]:
    one_ways: list[float] = []
    creates: list[float] = []
    latencies = harness.measure_in_turns(
        NAME,
        {
            "lonnymq": partial(measure_lonnymq, harness, creates),
            "round trip": partial(measure_round_trip, harness, one_ways),
        },
    )
    note = (
        f"p50; a one-way NOTIFY: {statistics.median(one_ways):.0f} µs;"
        " the create, which must be durable before the worker is notified:"
        f" {statistics.median(creates):.0f} µs"
    )
    return [
        Row(
            NAME, TITLE, "NOTIFY", "µs", latencies["lonnymq"], latencies["round trip"], at_most=2.2, note=note
        )
    ]


def pause() -> None:
    time.sleep(random.uniform(0.01, 0.03))


def measure_lonnymq(harness: Harness, creates: list[float]) -> float:
    with harness.install(LonnyMQ()) as dsn:
        count = harness.effort.wakeups
        took, latencies = parallel.run([partial(create, dsn, count), partial(work, dsn, count)])
        creates.append(statistics.median(took))
        return statistics.median(latencies)


def create(dsn: str, count: int, start: StartBarrier) -> list[float]:
    wire = Wire(dsn)
    took: list[float] = []
    start()
    for _ in range(count):
        pause()
        began_ns = time.monotonic_ns()
        content = STAMP.pack(began_ns) + PAYLOAD[STAMP.size :]
        wire.rows("select message_id from lonnymq.message_create('tenant', %b)", (content,))
        took.append((time.monotonic_ns() - began_ns) / 1000)
    wire.close()
    return took


def work(dsn: str, count: int, start: StartBarrier) -> list[float]:
    """Wait as queue_horizon.sql describes: poll until all transactions before the registration ended."""
    wire = Wire(dsn)
    wire.run(f"listen {wire.rows('select lonnymq.queue_event()')[0][0]}".encode())
    wire.rows("select lonnymq.sleeper_register('worker', 3600000)")
    must_reach = wire.rows("select newest from lonnymq.queue_horizon()")[0][0]
    has_reached = False
    latencies: list[float] = []
    start()
    while len(latencies) < count:
        row = wire.rows(
            """select outcome, wait_ms, message_id, token, content
            from lonnymq.message_dequeue(1, %s, 'worker', false)""",
            (LEASE_MS,),
        )[0]
        if row[0] == "leased":
            latencies.append((time.monotonic_ns() - STAMP.unpack_from(row[4])[0]) / 1000)
            wire.rows("select * from lonnymq.message_complete(%s, %s)", ([row[2]], [row[3]]))
        elif not has_reached:
            has_reached = wire.rows("select oldest from lonnymq.queue_horizon()")[0][0] >= must_reach
        elif row[0] == "empty":
            wait(wire, min(row[1], 5_000) / 1000)
    wire.close()
    return latencies


def wait(wire: Wire, timeout_s: float) -> list[str]:
    """Return the payloads received. The list exhausts the generator, which holds the connection's lock."""
    return [notify.payload for notify in wire.connection.notifies(timeout=timeout_s, stop_after=1)]


def measure_round_trip(harness: Harness, one_ways: list[float]) -> float:
    with harness.server.database() as dsn:
        count = harness.effort.wakeups
        trips, ways = parallel.run([partial(ping, dsn, count), partial(pong, dsn, count)])
        one_ways.append(statistics.median(ways))
        return statistics.median(trips)


def ping(dsn: str, count: int, start: StartBarrier) -> list[float]:
    wire = Wire(dsn)
    wire.run("listen pong")
    start()
    trips = []
    for _ in range(count):
        pause()
        began_ns = time.monotonic_ns()
        wire.run("select pg_notify('ping', %s)", (str(began_ns),))
        assert wait(wire, 10.0)
        trips.append((time.monotonic_ns() - began_ns) / 1000)
    wire.close()
    return trips


def pong(dsn: str, count: int, start: StartBarrier) -> list[float]:
    wire = Wire(dsn)
    wire.run("listen ping")
    start()
    ways: list[float] = []
    while len(ways) < count:
        for payload in wait(wire, 10.0):
            ways.append((time.monotonic_ns() - int(payload)) / 1000)
            wire.run("select pg_notify('pong', '')")
    wire.close()
    return ways


CASE = Case(NAME, TITLE, run)
