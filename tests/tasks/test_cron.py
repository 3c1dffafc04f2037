"""Crons in the database: each tick is created once."""

import asyncio
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from lonnymq import (
    App,
    AsyncQueue,
    Busy,
    ClientSettings,
    Cron,
    CronDeleteOutcome,
    CronSetOutcome,
    CronTickOutcome,
    InvalidArgument,
    Queue,
    Ticks,
    tick_of,
)
from lonnymq.cron import schedule
from lonnymq.tasks import ticker
from tests.conftest import Connect

START = datetime(2026, 1, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def set_(queue: Queue, name: str = "a", expression: str = "*/10 * * * *", **options: Any) -> CronSetOutcome:
    options = {"channel": "x", "payload": {"n": 1}, "catch_up": "all", "after": START, **options}
    return queue.cron.set(name, expression, **options)


def tick(dsn: str, *names: str, now: datetime | None = None) -> float:
    """Tick once as a worker does; return the seconds until its next call."""

    async def tick_once() -> float:
        async with AsyncQueue(dsn) as queue:
            return await ticker.tick(queue, names, now=now)

    return asyncio.run(tick_once())


def created(connect: Connect) -> list[str]:
    """Return the keys of all messages that crons have created, without their common prefix."""
    rows = (
        connect().execute("select substr(key, 6) from message where key like 'cron:%%' order by 1").fetchall()
    )
    return [key for (key,) in rows]


def status(queue: Queue, name: str = "a") -> Any:
    return next(one for one in queue.cron.list() if one.name == name)


def test_the_message_of_a_tick_has_its_time_and_its_key(queue: Queue, dsn: str) -> None:
    queue.channel("x").set(max_attempts=9)
    set_(queue, max_attempts=4)
    assert tick(dsn, now=START + 25 * MINUTE) == 0.0
    first, second = queue.dequeue(10)
    assert (first.payload, first.channel, first.max_attempts) == ({"n": 1}, "x", 4)
    assert first.key == "cron:a:2026-01-15T12:10:00Z"
    assert [tick_of(first), tick_of(second)] == [START + 10 * MINUTE, START + 20 * MINUTE]
    assert first.dequeue_at == (START + 10 * MINUTE).timestamp() * 1000
    assert status(queue).last_at == START + 20 * MINUTE
    for key in ("mine", "cron:mine", None):
        queue.enqueue("x", 1, key=key)
    assert [tick_of(message) for message in queue.dequeue(10)] == [None, None, None]


def test_the_messages_of_a_cron_have_its_headers(queue: Queue, dsn: str) -> None:
    headers = {"region": "eu", "lonnymq-on-buried": "failures"}
    assert set_(queue, headers=headers) == "set"
    assert set_(queue, headers=dict(reversed(headers.items()))) == "unchanged"
    tick(dsn, now=START + 10 * MINUTE)
    (message,) = queue.dequeue(10)
    assert message.headers == headers
    message.bury(error="no disk")
    (notice,) = queue.dequeue(10)
    assert (notice.channel, notice.headers["lonnymq-buried-id"]) == ("failures", str(message.id))
    assert set_(queue) == "set"
    tick(dsn, now=START + 20 * MINUTE)
    (message,) = queue.dequeue(10)
    assert message.headers == {}


@pytest.mark.parametrize("headers", [{"a": 1}, {"": "b"}, ["a"], {"a": "x" * 9000}])
def test_invalid_headers_of_a_cron_are_refused(queue: Queue, headers: Any) -> None:
    with pytest.raises(InvalidArgument, match="header"):
        set_(queue, headers=headers)
    with pytest.raises(InvalidArgument, match="header"):
        App(queue).cron("* * * * *", channel="x", headers=headers)
    assert queue.cron.list() == []


def test_tick_returns_the_seconds_until_the_next_tick(queue: Queue, dsn: str) -> None:
    assert tick(dsn, now=START) == ticker.POLL_S
    set_(queue)
    set_(queue, "b", "0 * * * *")
    tick(dsn, now=START)
    assert tick(dsn, now=START + 4 * MINUTE) == 360.0
    assert tick(dsn, now=START + timedelta(minutes=9, seconds=59, microseconds=999_900)) == 0.001


def test_only_one_of_several_concurrent_ticks_takes_effect(queue: Queue) -> None:
    set_(queue)
    (due,) = queue.cron.due(now=START + HOUR).crons
    assert due.mark_at == START
    ticks = schedule.decide(due)
    assert [queue.cron.tick(due, ticks) for _ in range(3)] == ["ticked", "stale", "stale"]
    assert queue.cron.due(now=START + HOUR).crons == ()


@pytest.mark.parametrize("change", ["pause", "delete", "expression", "resume", "set again"])
def test_ticks_computed_before_a_change_are_stale(queue: Queue, change: str, connect: Connect) -> None:
    set_(queue)
    (due,) = queue.cron.due(now=START + HOUR).crons
    if change == "expression":
        set_(queue, expression="*/20 * * * *")
    elif change == "delete":
        queue.cron.delete("a")
    elif change == "set again":
        queue.cron.delete("a")
        set_(queue, after=None)
    else:
        queue.cron.pause("a")
        if change == "resume":
            queue.cron.resume("a")
    assert queue.cron.tick(due, schedule.decide(due)) is CronTickOutcome.STALE
    assert created(connect) == []


def test_setting_a_cron_to_the_same_values_changes_nothing(queue: Queue, dsn: str) -> None:
    assert set_(queue) is CronSetOutcome.SET
    tick(dsn, now=START + HOUR)
    before = status(queue)
    assert set_(queue) is CronSetOutcome.UNCHANGED
    assert status(queue) == before


def test_only_a_new_expression_restarts_the_ticks_of_a_cron(queue: Queue, dsn: str) -> None:
    set_(queue)
    tick(dsn, now=START + HOUR)
    before = status(queue)
    assert set_(queue, payload={"n": 2}, channel="y", catch_up="none") is CronSetOutcome.SET
    assert (status(queue).mark_at, status(queue).next_at) == (before.mark_at, before.next_at)
    began = datetime.now(UTC) - MINUTE
    assert set_(queue, expression="0 4 * * *") is CronSetOutcome.SET
    assert status(queue).mark_at > began
    assert status(queue).next_at is None


def test_ticks_before_a_cron_was_set_do_not_count_as_missed(queue: Queue, dsn: str, connect: Connect) -> None:
    queue.cron.set("a", "0 * * * *", channel="x", payload=1, catch_up="all")
    tick(dsn)
    assert created(connect) == []
    next_at = status(queue).next_at
    assert datetime.now(UTC) - MINUTE < next_at <= datetime.now(UTC) + HOUR
    assert (next_at.minute, next_at.second) == (0, 0)


def test_ticks_of_a_paused_cron_are_not_caught_up(queue: Queue, dsn: str, connect: Connect) -> None:
    set_(queue, catch_up="all")
    assert queue.cron.pause("a") is CronSetOutcome.SET
    assert queue.cron.pause("a") is CronSetOutcome.UNCHANGED
    assert tick(dsn) == ticker.POLL_S
    # A deployment sets it again, and it stays paused.
    set_(queue, payload=2)
    assert status(queue).is_paused
    assert queue.cron.resume("a") is CronSetOutcome.SET
    assert queue.cron.resume("a") is CronSetOutcome.UNCHANGED
    tick(dsn)
    assert created(connect) == []
    now = status(queue).mark_at
    tick(dsn, now=now + 10 * MINUTE)
    assert len(created(connect)) == 1


def test_calls_for_an_unknown_cron_answer_unknown(queue: Queue) -> None:
    set_(queue)
    assert queue.cron.pause("b") is CronSetOutcome.UNKNOWN
    assert queue.cron.resume("b") is CronSetOutcome.UNKNOWN
    assert queue.cron.delete("b") is CronDeleteOutcome.UNKNOWN
    assert queue.cron.delete("a") is CronDeleteOutcome.DELETED
    assert queue.cron.delete("a") is CronDeleteOutcome.UNKNOWN
    assert queue.cron.list() == []


def test_crons_are_listed_by_name_in_pages(queue: Queue) -> None:
    for name in ("b", "c", "a"):
        set_(queue, name, timezone="Europe/Berlin", max_attempts=3)
    assert [one.name for one in queue.cron.list(limit=2)] == ["a", "b"]
    assert [one.name for one in queue.cron.list(limit=2, after="b")] == ["c"]
    found = status(queue)
    assert (found.expression, found.timezone, found.channel, found.catch_up, found.max_attempts) == (
        *("*/10 * * * *", "Europe/Berlin", "x", "all", 3),
    )
    assert (found.is_declared, found.is_paused, found.mark_at, found.next_at, found.last_at) == (
        *(False, False, START, None, None),
    )


def test_a_declared_cron_ticks_only_for_workers_that_declare_it(
    queue: Queue, dsn: str, connect: Connect
) -> None:
    """It stops ticking when it leaves the code; a cron that was set from outside is ticked by all workers."""
    queue.cron.declare(Cron(name="declared", expression="* * * * *", channel="x", payload=1))
    set_(queue, "set", "* * * * *")
    tick(dsn)
    later = datetime.now(UTC) + MINUTE
    tick(dsn, "other", now=later)
    assert {key.partition(":")[0] for key in created(connect)} == {"set"}
    tick(dsn, "declared", now=later)
    tick(dsn, "declared", now=later + MINUTE)
    assert {key.partition(":")[0] for key in created(connect)} == {"set", "declared"}


def test_a_cron_can_start_in_the_future(queue: Queue, dsn: str, connect: Connect) -> None:
    set_(queue)
    set_(queue, "bad", expression="* * * * *", timezone="Europe/Berlin")
    connect().execute("update cron set timezone = 'Mars/Olympus' where name = 'bad'")
    assert tick(dsn, now=START - 2 * HOUR) == 0.0
    assert status(queue).mark_at == START
    assert tick(dsn, now=START - HOUR) == 3900.0
    tick(dsn, now=START + 11 * MINUTE)
    assert created(connect) == ["a:2026-01-15T12:10:00Z"]


def test_a_full_channel_drops_a_tick_like_any_other_message(queue: Queue, dsn: str, connect: Connect) -> None:
    queue.channel("x").set(max_size=2)
    set_(queue)
    tick(dsn, now=START + HOUR)
    assert len(created(connect)) == 2
    assert status(queue).mark_at == START + HOUR


def test_a_cron_that_cannot_be_read_does_not_delay_others(
    queue: Queue, dsn: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """It was set in SQL, which does not check expressions, or by a program with newer time zones."""
    connect().execute("select cron_set('bad', 'nonsense', 'x', 'x', p_mark_at => %s)", [START])
    connect().execute(
        "select cron_set('far', '* * * * *', 'x', 'x', 'Mars/Olympus', p_mark_at => %s)", [START]
    )
    set_(queue, "good")
    tick(dsn, now=START + HOUR)
    assert len(created(connect)) == 6
    assert "cron bad does not tick: expression must be a cron expression" in caplog.text
    assert "cron far does not tick: timezone must be the name of a time zone" in caplog.text
    caplog.clear()
    tick(dsn, now=START + HOUR + MINUTE)
    assert caplog.text == ""
    # Its ticks are undecided: a worker that can read it catches up.
    assert status(queue, "far").mark_at == START


def test_a_cron_whose_content_is_too_large_does_not_delay_others(
    queue: Queue, dsn: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    set_(queue, "large", payload="x" * 200)
    set_(queue, "small")
    queue.set(max_content_bytes=100)
    tick(dsn, now=START + HOUR)
    assert {key.partition(":")[0] for key in created(connect)} == {"small"}
    assert "cron large does not tick: content must be at most 100 bytes" in caplog.text


def test_missed_ticks_are_caught_up_in_several_steps(queue: Queue, dsn: str, connect: Connect) -> None:
    set_(queue, expression="* * * * *")
    now = START + 300 * MINUTE
    assert tick(dsn, now=now) == 0.0
    assert len(created(connect)) == 200
    assert status(queue).last_at == START + 200 * MINUTE
    assert tick(dsn, now=now) == 0.0
    assert tick(dsn, now=now) == 60.0
    assert len(set(created(connect))) == 300


def test_a_cron_from_long_ago_does_not_flood_the_queue(
    queue: Queue, dsn: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    set_(queue, expression="* * * * * *", after=datetime(1970, 1, 1, tzinfo=UTC))
    set_(queue, "minutely", "* * * * *", after=START)
    now = START + HOUR
    for _ in range(10):
        tick(dsn, now=now)
    by_name = Counter(key.partition(":")[0] for key in created(connect))
    assert by_name == {"a": schedule.MAX_MISSED + 60, "minutely": 60}
    assert status(queue).mark_at == now
    assert caplog.text.count("cron a: more than 1000 ticks were missed, those up to 2026-01-15T") == 1


INSTANTS = ["0001-01-01", "9999-12-31", "20000-01-01", "infinity", "-infinity", "0044-03-15 BC"]


@pytest.mark.parametrize("column", ["mark_at", "next_at", "last_at", "created_at"])
def test_the_table_refuses_instants_that_workers_cannot_read(
    queue: Queue, connect: Connect, column: str
) -> None:
    set_(queue)
    for at in INSTANTS:
        with pytest.raises(psycopg.errors.CheckViolation):
            connect().execute(f"update cron set {column} = '{at}'".encode())
    for column, value in (("name", "a\nb"), ("expression", "*" * 256), ("timezone", "x" * 256)):
        with pytest.raises(psycopg.errors.CheckViolation):
            connect().execute(f"update cron set {column} = %s".encode(), [value])
    assert status(queue).mark_at == START


def test_a_transaction_that_changes_a_cron_makes_no_other_wait(dsn: str, connect: Connect) -> None:
    """Calls answer 'busy' at once, also about a cron that is being created."""
    settings = ClientSettings(busy_for_s=0.0)
    with Queue(dsn, settings=settings) as queue, psycopg.connect(dsn) as holder:
        set_(queue)
        (due,) = queue.cron.due(now=START + HOUR).crons
        ticks = schedule.decide(due)
        set_(queue, payload=2, connection=holder)
        set_(queue, "new", connection=holder)
        with psycopg.connect(dsn, options="-c lock_timeout=50ms", autocommit=True) as other:
            assert queue.cron.tick(due, ticks, connection=other) is CronTickOutcome.BUSY
            assert queue.cron.delete("a", connection=other) is CronDeleteOutcome.BUSY
            assert queue.cron.delete("new", connection=other) is CronDeleteOutcome.UNKNOWN
            for change in (queue.cron.pause, queue.cron.resume):
                with pytest.raises(Busy, match="another transaction is changing cron 'a'"):
                    change("a", connection=other)
            for name in ("a", "new"):
                with pytest.raises(Busy, match=f"another transaction is changing cron '{name}'"):
                    set_(queue, name, payload=3, connection=other)
            assert len(queue.cron.list(connection=other)) == 1
            holder.rollback()
            assert queue.cron.tick(due, ticks, connection=other) is CronTickOutcome.TICKED
            assert set_(queue, "new", connection=other) is CronSetOutcome.SET


def test_a_tick_belongs_to_its_transaction(queue: Queue, dsn: str, connect: Connect) -> None:
    set_(queue)
    (due,) = queue.cron.due(now=START + HOUR).crons
    with psycopg.connect(dsn) as connection:
        queue.cron.tick(due, schedule.decide(due), connection=connection)
        connection.rollback()
    assert created(connect) == []
    assert queue.cron.due(now=START + HOUR).crons == (due,)


def test_workers_that_start_together_declare_a_cron_once(dsn: str, queue: Queue) -> None:
    barrier = threading.Barrier(8)
    outcomes: list[str] = []

    def declare() -> None:
        with Queue(dsn) as own:
            own.cron.list()
            barrier.wait()
            cron = Cron(name="a", expression="0 3 * * *", channel="x", payload=1)
            outcomes.append(own.cron.declare(cron))

    threads = [threading.Thread(target=declare) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(outcomes) == {"set": 1, "unchanged": 7}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name must be 1 to 200 characters"),
    ({"name": "x" * 201}, "name must be 1 to 200 characters"),
    ({"name": "a\nb"}, "name must be 1 to 200 characters without control characters"),
    ({"name": None}, "name must be"),
    ({"expression": "every day"}, "expression must be a cron expression"),
    ({"timezone": "Berlin"}, "timezone must be the name of a time zone"),
    ({"channel": ""}, "channel must be"),
    ({"payload": {1, 2}}, "payload must be"),
    ({"catch_up": "some"}, "catch_up must be one of all, latest, none"),
    ({"max_attempts": 0}, "max_attempts must be"),
    ({"after": datetime(2026, 1, 1)}, "after must be an aware datetime"),
    ({"after": datetime(1969, 12, 31, tzinfo=UTC)}, "after must be between 1970 and"),
    ({"after": datetime.min.replace(tzinfo=UTC)}, "after must be between 1970 and"),
    ({"after": datetime.max.replace(tzinfo=UTC)}, "after must be between 1970 and"),
    ({"expression": "1," * 1000 + "1 * * * *"}, "expression must be a cron expression"),
]


@pytest.mark.parametrize(("options", "expected_error"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_argument_is_named(options: dict[str, Any], expected_error: str) -> None:
    with pytest.raises(InvalidArgument, match=expected_error):
        set_(Queue("dbname=nobody"), **options)


@pytest.mark.plan
def test_the_cost_of_cron_due_does_not_grow_with_the_number_of_crons(connect: Connect) -> None:
    session = connect()
    session.execute(
        "insert into cron"
        " (name, expression, timezone, channel, content, catch_up, is_declared, mark_at, next_at)"
        " select n::text, '0 3 * * *', 'UTC', 'x', 'x', 'all', n %% 2 = 0, now(), now() + n * %s"
        " from generate_series(60, 20000) n",
        [timedelta(seconds=1)],
    )
    for _ in range(2):
        for hours in (0, 2):
            call = f"cron_due(array['62'], 10, now() + interval '{hours} hours')"
            for _ in range(2):
                rows = session.execute(f"explain (analyze, buffers, format json) select {call}".encode())
                plan = rows.fetchall()[0][0][0]["Plan"]
            # Of the second execution: the first one reads the catalog.
            assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 30
        session.execute("analyze cron")


def test_crons_work_in_a_schema_of_any_name(dsn: str) -> None:
    with Queue(dsn, schema='weird "; drop schema x; --') as queue:
        queue.install()
        set_(queue)
        (due,) = queue.cron.due(now=START + HOUR).crons
        assert queue.cron.tick(due, Ticks((START + MINUTE,), START + HOUR, START + 2 * HOUR)) == "ticked"
        assert len(queue.dequeue(10)) == 1
        queue.uninstall()
