"""How soon a waiting worker has a message that was just created, against LISTEN/NOTIFY itself."""

import random
import statistics
import struct
import time
from functools import partial

from benchmarks import fleet
from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Ours
from benchmarks.contenders.contender import LEASE_MS, PAYLOAD, Wire
from benchmarks.fleet import Gate

TITLE = "idle wake-up: create to dequeue in a waiting worker, p50"
NAME = "wake-up"
# Both processes read the same monotonic clock; the message carries the time of its creation.
STAMP = struct.Struct(">q")


def run(bench: Bench) -> list[Row]:
    one_ways: list[float] = []
    creates: list[float] = []
    latencies = bench.interleaved(
        NAME,
        {
            "lonnymq": partial(measure_ours, bench, creates),
            "round trip": partial(measure_round_trip, bench, one_ways),
        },
    )
    note = (
        f"p50; one way of the NOTIFY alone: {statistics.median(one_ways):.0f} µs;"
        f" the create, which must be on disk before anybody hears of it: {statistics.median(creates):.0f} µs"
    )
    return [
        Row(
            NAME, TITLE, "NOTIFY", "µs", latencies["lonnymq"], latencies["round trip"], at_most=2.0, note=note
        )
    ]


def pause() -> None:
    time.sleep(random.uniform(0.01, 0.03))


def measure_ours(bench: Bench, creates: list[float]) -> float:
    with bench.installed(Ours()) as dsn:
        count = bench.effort.wakeups
        took, latencies = fleet.run([partial(create, dsn, count), partial(work, dsn, count)])
        creates.append(statistics.median(took))
        return statistics.median(latencies)


def create(dsn: str, count: int, gate: Gate) -> list[float]:
    wire = Wire(dsn)
    took: list[float] = []
    gate()
    for _ in range(count):
        pause()
        began_ns = time.monotonic_ns()
        content = STAMP.pack(began_ns) + PAYLOAD[STAMP.size :]
        wire.rows("select message_id from lonnymq.message_create('tenant', %b)", (content,))
        took.append((time.monotonic_ns() - began_ns) / 1000)
    wire.close()
    return took


def work(dsn: str, count: int, gate: Gate) -> list[float]:
    """Waits as queue_horizon's header says: asks until all who began before the registration have ended."""
    wire = Wire(dsn)
    wire.run(f"listen {wire.rows('select lonnymq.queue_event()')[0][0]}".encode())
    wire.rows("select lonnymq.sleeper_register('worker', 3600000)")
    must_reach = wire.rows("select newest from lonnymq.queue_horizon()")[0][0]
    is_heard = False
    latencies: list[float] = []
    gate()
    while len(latencies) < count:
        row = wire.rows(
            """select outcome, wait_ms, message_id, token, content
            from lonnymq.message_dequeue(1, %s, 'worker', false)""",
            (LEASE_MS,),
        )[0]
        if row[0] == "leased":
            latencies.append((time.monotonic_ns() - STAMP.unpack_from(row[4])[0]) / 1000)
            wire.rows("select * from lonnymq.message_complete(%s, %s)", ([row[2]], [row[3]]))
        elif not is_heard:
            is_heard = wire.rows("select oldest from lonnymq.queue_horizon()")[0][0] >= must_reach
        elif row[0] == "empty":
            wait(wire, min(row[1], 5_000) / 1000)
    wire.close()
    return latencies


def wait(wire: Wire, timeout_s: float) -> list[str]:
    """The payloads of what came. The generator holds the connection's lock: exhaust it before going on."""
    return [heard.payload for heard in wire.connection.notifies(timeout=timeout_s, stop_after=1)]


def measure_round_trip(bench: Bench, one_ways: list[float]) -> float:
    with bench.server.database() as dsn:
        count = bench.effort.wakeups
        trips, ways = fleet.run([partial(ping, dsn, count), partial(pong, dsn, count)])
        one_ways.append(statistics.median(ways))
        return statistics.median(trips)


def ping(dsn: str, count: int, gate: Gate) -> list[float]:
    wire = Wire(dsn)
    wire.run("listen pong")
    gate()
    trips = []
    for _ in range(count):
        pause()
        began_ns = time.monotonic_ns()
        wire.run("select pg_notify('ping', %s)", (str(began_ns),))
        assert wait(wire, 10.0)
        trips.append((time.monotonic_ns() - began_ns) / 1000)
    wire.close()
    return trips


def pong(dsn: str, count: int, gate: Gate) -> list[float]:
    wire = Wire(dsn)
    wire.run("listen ping")
    gate()
    ways: list[float] = []
    while len(ways) < count:
        for payload in wait(wire, 10.0):
            ways.append((time.monotonic_ns() - int(payload)) / 1000)
            wire.run("select pg_notify('pong', '')")
    wire.close()
    return ways


CASE = Case(NAME, TITLE, run)
