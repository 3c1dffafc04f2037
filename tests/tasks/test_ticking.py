"""Workers that tick crons, by the database's clock or a simulated one."""

import asyncio
import logging
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lonnymq import App, AsyncQueue, Cron, InvalidArgument, Queue, Ticks
from lonnymq.tasks import ticker
from tests.conftest import Connect
from tests.proxy import Proxy
from tests.tasks.test_cron import HOUR, MINUTE, START, created, set_, tick

ROOT = Path(__file__).resolve().parents[2]


def test_a_worker_that_may_not_declare_crons_still_ticks_existing_ones(
    queue: Queue, dsn: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    role = f"ticker_{connect().info.backend_pid}"
    owner = connect()
    owner.execute(f"create role {role} login password 'secret'".encode())
    try:
        queue.grant(role, "worker")
        queue.cron.set("set", "* * * * * *", channel="x", payload=1, catch_up="all", after=datetime.now(UTC))
        where = psycopg.conninfo.make_conninfo(dsn, user=role, password="secret")
        declared = [Cron(name="declared", expression="* * * * *", channel="x", payload=1)]
        with caplog.at_level(logging.INFO, "lonnymq"):
            run_ticker(where, declared, until=lambda: len(created(connect)) >= 2)
        assert "cron declared was not declared: permission denied" in caplog.text
        assert "grant the worker's role 'producer' too" in caplog.text
        assert caplog.text.count("not declared") == 1
    finally:
        owner.execute(f"drop owned by {role} cascade; drop role {role}".encode())


def test_crons_tick_again_when_the_database_is_back(
    dsn: str, connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ticker, "ERROR_RETRY_S", 0.05)
    cron = Cron(name="a", expression="* * * * * *", channel="x", payload=1)
    watching = connect()

    def cut_and_count() -> bool:
        watching.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name = 'lonnymq' and random() < 0.3"
        )
        return len(created(connect)) >= 3

    run_ticker(dsn, [cron], until=cut_and_count)
    ticks = [datetime.fromisoformat(key[-20:]) for key in created(connect)]
    assert ticks == [ticks[0] + n * timedelta(seconds=1) for n in range(len(ticks))]


def run_ticker(dsn: str, crons: list[Cron], until: Callable[[], bool]) -> None:
    """Tick by the database's clock until a condition holds."""

    async def run() -> None:
        async with AsyncQueue(dsn) as queue:
            ticking = asyncio.create_task(ticker.tick_forever(queue, crons))
            deadline = time.monotonic() + 60
            while not await asyncio.to_thread(until):
                assert not ticking.done()
                assert time.monotonic() < deadline
                await asyncio.sleep(0.1)
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)

    asyncio.run(run())


def test_crons_do_not_wait_for_a_silent_connection(
    dsn: str, connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ticker, "ERROR_RETRY_S", 0.05)
    cron = Cron(name="a", expression="* * * * * *", channel="x", payload=1)

    async def ticked(count: int) -> None:
        async with asyncio.timeout(60):
            while len(await asyncio.to_thread(created, connect)) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def scenario() -> None:
        with Proxy(dsn) as proxy:
            async with AsyncQueue(proxy.dsn) as queue:
                ticking = asyncio.create_task(ticker.tick_forever(queue, [cron], call_timeout_s=1.0))
                await ticked(1)
                proxy.stall()
                await asyncio.sleep(2.0)
                proxy.abandon_open_connections()
                await ticked(4)
                ticking.cancel()
                await asyncio.wait({ticking})

    asyncio.run(scenario())
    assert "crons do not tick: no answer from the database within 1 s" in caplog.text


def test_a_worker_without_the_cron_library_leaves_crons_alone(
    queue: Queue, dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_(queue)
    before = queue.cron.list()
    monkeypatch.setitem(sys.modules, "cronsim", None)
    monkeypatch.setattr(ticker, "ERROR_RETRY_S", 0.01)
    run_ticker(dsn, [], until=lambda: "crons do not tick" in caplog.text)
    assert 'pip install ".[cron]"' in caplog.text
    assert caplog.text.count("do not tick") == 1
    assert queue.cron.list() == before


def fail_for(connect: Connect, name: str) -> None:
    """Let every change of a cron's row fail."""
    connect().execute(
        f"""
        create function fail() returns trigger language plpgsql as $$
        begin
          raise division_by_zero using message = E'nobody\\nknows \\u009b';
        end
        $$;
        create trigger fail before update on cron for each row when (old.name = '{name}')
        execute function fail();
        """.encode()
    )


def test_a_cron_that_cannot_tick_or_be_postponed_does_not_delay_others(
    queue: Queue,
    dsn: str,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(ticker, "ERROR_RETRY_S", 0.05)
    fail_for(connect, "bad")
    for name in ("bad", "good"):
        set_(queue, name, "* * * * * *", after=datetime.now(UTC))
    run_ticker(dsn, [], until=lambda: len(created(connect)) >= 2)
    assert {key.partition(":")[0] for key in created(connect)} == {"good"}
    assert "cron bad does not tick: nobody\\nknows \\x9b" in caplog.text
    assert "cron bad cannot be postponed: nobody" in caplog.text


@pytest.mark.slow
def test_many_crons_that_cannot_tick_do_not_delay_others(queue: Queue, dsn: str, connect: Connect) -> None:
    """There are more of them than one page."""
    for n in range(110):
        set_(queue, f"bad {n}")
    connect().execute(
        """
        create function fail() returns trigger language plpgsql as
          $$ begin raise division_by_zero; end $$;
        create trigger fail before update on cron for each row when (old.name like 'bad%')
        execute function fail();
        """
    )
    set_(queue, "good")
    assert tick(dsn) == 0.0
    assert {key.partition(":")[0] for key in created(connect)} == {"good"}


def test_a_cron_at_the_end_of_the_calendar_is_postponed(queue: Queue, dsn: str, connect: Connect) -> None:
    set_(queue)
    connect().execute("update cron set mark_at = '8999-12-31 23:59:59Z', expression = '0 12 * * *'")
    tick(dsn)
    assert queue.cron.due().crons == ()


def test_ticks_in_the_far_future_cannot_be_decided(queue: Queue) -> None:
    set_(queue)
    (due,) = queue.cron.due().crons
    far = datetime(8999, 12, 31, tzinfo=UTC)
    with pytest.raises(InvalidArgument, match=r"until_at.*at most 100 years from now"):
        queue.cron.tick(due, Ticks((), far, far + HOUR))


def test_a_cron_whose_call_takes_too_long_does_not_delay_others(
    queue: Queue, dsn: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("slow", *(f"good {n}" for n in range(5))):
        set_(queue, name, channel=name)
    connect().execute(
        """
        create function hang() returns trigger language plpgsql as
          $$ begin perform pg_sleep(30); return new; end $$;
        create trigger hang before insert on message for each row when (new.key like 'cron:slow:%')
        execute function hang();
        """
    )

    async def tick_once() -> float:
        async with AsyncQueue(dsn) as own:
            return await ticker.tick(own, call_timeout_s=1.0)

    asyncio.run(tick_once())
    ticked = {key.partition(":")[0] for key in created(connect)}
    assert ticked == {f"good {n}" for n in range(5)}
    assert "cron slow does not tick: no answer from the database within 1 s" in caplog.text


def test_ticks_with_large_contents_are_caught_up_a_few_at_a_time(
    queue: Queue, dsn: str, connect: Connect
) -> None:
    set_(queue, payload="x" * 400_000)
    tick(dsn, now=START + HOUR)
    assert len(created(connect)) == 2
    for _ in range(5):
        tick(dsn, now=START + HOUR)
    assert len(created(connect)) == 6


def test_a_cron_that_cannot_be_declared_does_not_delay_others(
    queue: Queue, dsn: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    fail_for(connect, "bad")
    set_(queue, "bad")
    declared = [Cron(name=name, expression="* * * * * *", channel="x", payload=1) for name in ("bad", "good")]
    run_ticker(dsn, declared, until=lambda: len(created(connect)) >= 1)
    assert "cron bad was not declared: nobody" in caplog.text
    assert caplog.text.count("not declared") == 1


@pytest.mark.parametrize(
    "change",
    [
        *(f"mark_at = '{at}'" for at in ("20000-01-01", "9999-12-31 23:59Z", "infinity", "0001-01-01 BC")),
        "catch_up = 'some'",
    ],
)
def test_a_worker_processes_messages_even_if_its_crons_are_broken(
    queue: Queue, connect: Connect, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if a row violates the table's constraints."""
    monkeypatch.setattr(ticker, "ERROR_RETRY_S", 0.05)
    set_(queue)
    for constraint in ("cron_instants_check", "cron_catch_up_check"):
        connect().execute(f"alter table cron drop constraint {constraint}".encode())
    connect().execute(f"update cron set {change}".encode())
    app = App(queue)
    done: list[int] = []

    @app.task()
    def work_(n: int) -> None:
        done.append(n)
        time.sleep(0.2)

    for n in range(5):
        work_.enqueue("acme", n)
    run_app(app, until=lambda: len(done) == 5)
    assert sorted(done) == [0, 1, 2, 3, 4]


def run_app(app: App[Any], until: Callable[[], bool]) -> None:
    async def serve() -> None:
        worker = app.worker(concurrency=1)
        serving = asyncio.create_task(worker.serve())
        deadline = time.monotonic() + 60
        while not until():
            assert not serving.done(), serving.exception()
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
        worker.stop()
        assert await serving == 0

    asyncio.run(serve())


# Six hours around each clock change in Berlin.
SPRING = datetime(2026, 3, 28, 22, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 24, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "daily"), [(SPRING, ["29T01:00"]), (AUTUMN, ["25T00:30"])], ids=["spring", "autumn"]
)
def test_three_processes_create_each_tick_once(
    queue: Queue, dsn: str, connect: Connect, start: datetime, daily: list[str]
) -> None:
    """Their clocks differ by minutes, one is killed, and no key prevents duplicates."""
    record_keys(connect)
    end = start + 6 * HOUR
    queue.cron.declare(
        Cron(name="declared", expression="*/5 * * * *", channel="x", payload=1, timezone="Europe/Berlin")
    )
    connect().execute("update cron set mark_at = %s, catch_up = 'all'", [start])
    set_(queue, "daily", "30 2 * * *", timezone="Europe/Berlin", after=start)
    set_(queue, "seconds", "*/20 * * * * *", timezone="America/New_York", after=start)
    for n in range(20):
        set_(queue, f"tenant {n}", f"{n} * * * *", channel=f"tenant {n}", after=start)

    module = [sys.executable, "-m", "tests.tasks.ticking", dsn, start.isoformat(), end.isoformat(), "7200"]
    processes = [
        subprocess.Popen(
            [*module, skew_s], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for skew_s in ("-400", "0", "400")
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    began = time.time()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{began}\n")
        process.stdin.flush()
    wait_for(lambda: len(recorded(connect)) > 300)
    processes[2].send_signal(signal.SIGKILL)
    for process in processes:
        process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0, 0, -signal.SIGKILL]

    found = recorded(connect)
    assert len(found) == len(set(found))
    by_name = Counter(key[:-21] for key in found)
    tenants = {f"tenant {n}": 6 for n in range(20)}
    assert by_name == {"declared": 72, "daily": 1, "seconds": 6 * 180, **tenants}
    assert [key[-12:-4] for key in found if key.startswith("daily:")] == daily
    declared = [datetime.fromisoformat(key[-20:]) for key in found if key.startswith("declared:")]
    assert declared == [start + n * 5 * MINUTE for n in range(1, 73)]


def record_keys(connect: Connect, *, is_key_removed: bool = True) -> None:
    """Record the keys of new messages, and remove them so that they prevent no duplicate."""
    connect().execute(
        f"""
        create table recorded (key text);
        create function record_key() returns trigger language plpgsql as $$
        begin
          insert into lonnymq.recorded select substr(new.key, 6) where new.key like 'cron:%';
          if {is_key_removed} then
            new.key := null;
          end if;
          return new;
        end
        $$;
        create trigger record_key before insert on message for each row execute function record_key();
        """.encode()
    )


def recorded(connect: Connect) -> list[str]:
    return [key for (key,) in connect().execute("select key from recorded order by key").fetchall()]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
