"""Metrics of a queue inside another program: a mounted application, and a collector in its registry."""

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from lonnymq import AsyncQueue, HistoryMode, Queue, WorkerState
from lonnymq.errors import InvalidArgument
from lonnymq.model import FleetPart
from lonnymq.telemetry import prometheus_names as names
from lonnymq.telemetry.monitor import Monitor, Reading
from lonnymq.telemetry.prometheus import MonitorSettings, QueueCollector, make_asgi_app
from lonnymq.telemetry.queue_metrics import encode, queue_metrics
from tests.conftest import Database
from tests.proxy import Proxy
from tests.telemetry.scrape import check_with_promtool, samples
from tests.worker.workers import running_worker


def collect(registry: CollectorRegistry) -> dict[tuple[str, ...], float]:
    return samples(generate_latest(registry).decode())


def test_a_new_queue_shows_every_metric_of_the_queue_as_zero(dsn: str) -> None:
    registry = CollectorRegistry()
    collector = QueueCollector(dsn)
    registry.register(collector)
    text = generate_latest(registry).decode()
    check_with_promtool(text)
    found = samples(text)
    shown = {key[0] for key in found}
    of_things = {names.CRON_OVERDUE_SECONDS, names.READER_LAG_SECONDS, *names.CHANNEL_METRICS}
    assert shown == {one.name for one in names.QUEUE_METRICS if one not in of_things}
    zero = (
        "queue_turn_lag_seconds",
        "queue_demand",
        "queue_due_channels",
        "queue_expired_leases",
        "queue_sleepers",
    )
    assert [found[f"lonnymq_{name}",] for name in zero] == [0.0] * 5
    assert [value for key, value in found.items() if key[0] == "lonnymq_queue_messages"] == [0.0] * 4
    # Help texts are single lines that say what is counted.
    described = {line.split(" ", 3)[2]: line for line in text.splitlines() if line.startswith("# HELP")}
    assert "starts again" in described["lonnymq_queue_created_total"]
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(QueueCollector(dsn))
    collector.close()


def test_counters_readers_and_crons_are_shown(queue: Queue, dsn: str) -> None:
    queue.set(history=HistoryMode.METADATA)
    for number in range(3):
        queue.enqueue("a", number)
    for message in queue.dequeue(limit=2):
        message.complete()
    queue.cron.set("late", "* * * * *", channel="c", payload=1, after=datetime.now(UTC) - timedelta(hours=2))
    queue.cron.set("paused", "* * * * *", channel="c", payload=1)
    queue.cron.pause("paused")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into lonnymq.history_reader (name, xid, id, done_xid, done_id)"
            " values ('lake', 0, 0, 0, 0)"
        )
        connection.execute(
            "insert into lonnymq.history_reader (name, xid, id, done_xid, done_id)"
            " select 'done', xid, id, xid, id from lonnymq.history order by xid desc, id desc limit 1"
        )
        connection.execute(
            "select pg_stat_force_next_flush()"
        ) if connection.info.server_version >= 150_000 else None
        connection.execute("update lonnymq.history set ended_at = ended_at - 60000")
    registry = CollectorRegistry()
    # A queue that the program has: its target is used, and not its connections.
    collector = QueueCollector(queue)
    registry.register(collector)
    found = collect(registry)
    assert found["lonnymq_history_reader_lag_seconds", "done"] == 0
    assert 60 <= found["lonnymq_history_reader_lag_seconds", "lake"] < 3600
    assert found["lonnymq_cron_overdue_seconds", "late"] >= 7200
    assert ("lonnymq_cron_overdue_seconds", "paused") not in found
    queue.close()
    for _ in range(200):
        found = collect(registry)
        if found["lonnymq_queue_ended_total",] == 2:
            break
        asyncio.run(asyncio.sleep(0.1))
    assert found["lonnymq_queue_created_total",] == 3
    assert found["lonnymq_queue_leased_total",] == found["lonnymq_queue_ended_total",] == 2
    collector.close()


def test_series_of_channels_are_bounded(queue: Queue, dsn: str) -> None:
    for number in range(30):
        queue.enqueue(f"c{number}", number)
    registry = CollectorRegistry()
    collector = QueueCollector(dsn, MonitorSettings(top=5, channels=["c1", "c2"]))
    registry.register(collector)
    assert len({key[1] for key in collect(registry) if key[0].startswith("lonnymq_channel_")}) in range(5, 8)
    collector.close()
    for wrong in (
        {"top": 101},
        {"channels": ["a"] * 101},
        {"channels": "a"},
        {"channels": [""]},
        {"timeout_s": 0},
    ):
        with pytest.raises(InvalidArgument):
            MonitorSettings(**wrong)


def test_whoever_asks_at_the_same_time_gets_the_same_look(dsn: str) -> None:
    async def scenario() -> None:
        monitor = Monitor(dsn, MonitorSettings(max_age_s=0))
        looks = await asyncio.gather(*(monitor.look() for _ in range(20)))
        assert len(set(map(id, looks))) == 1
        assert looks[0].reading is not None
        # One that gives up does not end it for the others.
        impatient, patient = asyncio.create_task(monitor.look()), asyncio.create_task(monitor.look())
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).reading is not None
        assert await patient is not looks[0]
        await monitor.close()

    asyncio.run(scenario())


def test_a_silent_database_is_given_up_and_tried_again(dsn: str) -> None:
    """The connection stays open, as with a pooler whose server is gone: nothing reports an error."""

    async def scenario(proxy: Proxy) -> None:
        monitor = Monitor(proxy.dsn, MonitorSettings(max_age_s=0, timeout_s=0.5))
        while (await monitor.look()).reading is None:  # on a busy machine
            pass
        proxy.stall_open_connections()
        given_up = await monitor.look()
        assert given_up.reading is None
        assert "no answer" in given_up.error
        # It asks on a new connection.
        while (await monitor.look()).reading is None:
            pass
        proxy.stall()
        for _ in range(3):
            assert (await monitor.look()).reading is None
        proxy.resume()
        while (await monitor.look()).reading is None:
            pass
        await monitor.close()

    with Proxy(dsn) as proxy:
        asyncio.run(scenario(proxy))


def test_a_look_says_what_is_wrong_with_the_queue(database: Database) -> None:
    async def scenario() -> None:
        monitor = Monitor(database(is_empty=True), MonitorSettings(max_age_s=0))
        look = await monitor.look()
        assert look.reading is None
        assert "lonnymq install" in look.error
        assert samples(encode(queue_metrics(look, 0.0), "")[0].decode()) == {("lonnymq_up",): 0.0}
        await monitor.close()
        closed = await monitor.look()
        assert closed.reading is None

    asyncio.run(scenario())


def test_an_answer_that_makes_no_sense_is_not_the_last(dsn: str, connect: Callable[..., Any]) -> None:
    """A newer queue may know states of workers that this program does not know."""
    connection = connect()
    view = connection.execute("select pg_get_viewdef('lonnymq.worker_status')").fetchone()[0]
    connection.execute(
        "insert into lonnymq.worker_process values"
        " ('w', 'h', 1, '1', '{}', 1, 0, (extract(epoch from clock_timestamp()) * 1000000)::bigint, false, 0,"
        " 0, '{}', '{}', '{}', false, null)"
    )

    async def scenario() -> None:
        monitor = Monitor(dsn, MonitorSettings(max_age_s=0))
        connection.execute(
            f"create or replace view lonnymq.worker_status as {view.replace('working', 'resting')}"
        )
        for _ in range(2):
            failed = await monitor.look()
            assert failed.reading is None
            assert "resting" in failed.error
        connection.execute(f"create or replace view lonnymq.worker_status as {view}")
        assert (await monitor.look()).reading is not None
        await monitor.close()

    asyncio.run(scenario())


def test_workers_are_shown_by_their_own_reports(dsn: str) -> None:
    async def scenario() -> None:
        monitor = Monitor(dsn, MonitorSettings(max_age_s=0))
        async with running_worker(dsn, lambda message: None, concurrency=3):
            while not (fleet := (await read(monitor)).fleet):  # noqa: ASYNC110 - another task reports
                await asyncio.sleep(0.05)
            assert fleet == {WorkerState.WORKING: FleetPart(1, 3, 0)}
            found = samples(encode(queue_metrics(await monitor.look(), 0.0), "")[0].decode())
            assert found["lonnymq_queue_workers", "working"] == 1
            assert found["lonnymq_queue_workers", "gone"] == 0
            assert found["lonnymq_queue_slots", "free"] == 3
        await monitor.close()

    async def read(monitor: Monitor) -> Reading:
        look = await monitor.look()
        assert look.reading is not None, look.error
        return look.reading

    asyncio.run(scenario())


def test_a_collector_works_in_threads_and_after_a_fork(dsn: str) -> None:
    registry = CollectorRegistry()
    collector = QueueCollector(dsn)
    registry.register(collector)
    with ThreadPoolExecutor(8) as threads:
        assert {one["lonnymq_up",] for one in threads.map(lambda _: collect(registry), range(16))} == {1.0}
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writable, str(collect(registry)["lonnymq_up",]).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as answer:
        assert answer.read() == "1.0"
    os.waitpid(child, 0)
    assert collect(registry)["lonnymq_up",] == 1
    collector.close()


async def request(
    app: Any, path: str, root_path: str = "", method: str = "GET", accept: str = ""
) -> tuple[int, bytes]:
    sent: list[Any] = []
    headers = [(b"accept", accept.encode())]

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": path, "root_path": root_path, "method": method, "headers": headers}
    await app(scope, None, send)
    return sent[0]["status"], sent[1]["body"]


def test_an_application_is_mounted_anywhere_and_needs_no_lifespan(queue: Queue, dsn: str) -> None:
    queue.enqueue("a", 1)
    app = make_asgi_app(AsyncQueue(dsn))

    async def scenario() -> None:
        status, body = await request(app, "/internal/metrics", "/internal/metrics")
        assert (status, samples(body.decode())["lonnymq_queue_messages", "waiting"]) == (200, 1)
        status, body = await request(
            app, "/m/metrics", "/m", accept="application/openmetrics-text; version=1.0.0"
        )
        assert (status, body[-6:]) == (200, b"# EOF\n")
        status, body = await request(app, "/demand")
        assert (status, json.loads(body)["work"]) == (200, 1)
        assert await request(app, "/metrics", method="HEAD") == (200, b"")
        assert (await request(app, "/metrics/../etc"))[0] == 404

    # On two loops, as in tests.
    asyncio.run(scenario())
    asyncio.run(scenario())
