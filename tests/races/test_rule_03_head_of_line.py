"""Rule 3: wakes, bulk loads and expired leases of one tenant do not block other tenants."""

import time
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.conftest import Connect
from tests.races.hints import pretend_expensive_scan
from tests.races.sessions import (
    Session,
    ask,
    complete,
    create,
    create_in,
    dequeue,
    drain,
    value,
    work_until,
)

pytestmark = pytest.mark.race

AN_HOUR_MS = 3_600_000


@pytest.fixture
def locked(connect: Connect) -> Iterator[str]:
    """A channel whose turn an open transaction of a worker has locked."""
    holder = connect()
    create(holder, "locked", 2)
    holder.execute("begin")
    assert dequeue(holder)
    yield "locked"
    holder.execute("rollback")


@pytest.mark.parametrize(("wakes", "is_warm"), [(1_001, True), (10_000, False), (30_000, True)])
def test_wakes_of_a_locked_channel_do_not_hide_other_channels(
    connect: Connect, locked: str, wakes: int, is_warm: bool
) -> None:
    session, worker = connect(), connect()
    if is_warm:
        ask(worker)
    create_one_by_one(session, locked, wakes)
    create(session, "other")
    assert_served(worker, "other")


def test_bulk_loads_into_a_locked_channel_do_not_hide_others(connect: Connect, locked: str) -> None:
    session, worker = connect(), connect()
    for _ in range(600):
        publish(session, [locked])
    publish(session, ["other"])
    assert_served(worker, "other")


def test_creates_of_one_tenant_delay_no_pause_priority_or_new_tenant(
    connect: Connect,
) -> None:
    session, worker = connect(), connect()
    create_in(session, ["paused", "urgent"])
    drain(worker)
    create(session, "paused", 10)
    create(session, "urgent", 10)
    create_one_by_one(session, "busy", 10_000)
    session.execute("select channel_pause('paused')")
    (urgent,) = create(session, "urgent", at=-1)
    create(session, "new")
    first = [dequeue(worker)[0] for _ in range(6)]
    assert "new" in [one.channel for one in first]
    assert "paused" not in [one.channel for one in first]
    assert next(one.id for one in first if one.channel == "urgent") == urgent
    complete(worker, first)


def test_a_bulk_load_of_many_channels_does_not_delay_others(connect: Connect) -> None:
    session, worker = connect(), connect()
    ask(worker)
    publish(session, [f"bulk {n}" for n in range(20_000)])
    create(session, "other")
    worked = work_until(worker, lambda worked: any(one.channel == "other" for one in worked), limit=10)
    assert [one.channel for one in worked].index("other") < 100


def test_messages_of_a_bulk_load_and_of_single_creates_take_turns(connect: Connect) -> None:
    session, worker = connect(), connect()
    publish(session, [f"bulk {n}" for n in range(300)])
    for n in range(300):
        create(session, f"single {n}")
    worked = work_until(worker, lambda worked: len(worked) >= 600, limit=20, within_s=10)
    assert len(worked) == 600


def test_scheduled_channels_do_not_make_a_worker_sleep_too_early(connect: Connect) -> None:
    session, worker = connect(), connect()
    now = value(session, "select to_epoch(now())")
    for n in range(100):
        create(session, f"later {n}", at=now + AN_HOUR_MS)
    create(session, "now")
    assert_served_without_sleeping(worker, "now")


def test_expired_leases_of_a_paused_channel_do_not_make_a_worker_sleep(connect: Connect) -> None:
    session, worker = connect(), connect()
    create_expired_leases(session, "paused", 300)
    create_expired_leases(session, "active", 1)
    session.execute("select channel_pause('paused')")
    assert_served_without_sleeping(worker, "active")


def test_expired_leases_with_uncommitted_cancellations_hide_no_others(connect: Connect) -> None:
    session, canceller, worker = connect(), connect(), connect()
    ids = create_expired_leases(session, "cancelled", 500)
    create_expired_leases(session, "active", 1)
    canceller.execute("begin")
    canceller.execute("select count(*) from message_cancel(%s)", [ids])
    assert_served(worker, "active")
    canceller.execute("commit")


def assert_served(worker: Session, channel: str, *, within_s: float = 10) -> None:
    worked = work_until(
        worker, lambda worked: any(one.channel == channel for one in worked), within_s=within_s
    )
    assert channel in [one.channel for one in worked]


def assert_served_without_sleeping(worker: Session, channel: str) -> None:
    """Like assert_served, but the worker must never be told to sleep."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        answer = ask(worker)
        if answer.leased:
            complete(worker, answer.leased)
        if channel in [one.channel for one in answer.leased]:
            return
        assert (answer.wait_ms or 0) < 3000
    raise AssertionError(f"{channel} was not served")


def create_expired_leases(session: Session, channel: str, count: int) -> list[int]:
    create(session, channel, count)
    leased = dequeue(session, count)
    assert len(leased) == count
    ids = [one.id for one in leased]
    session.execute("update lease set unlock_at = unlock_at - 60000000 where message_id = any(%s)", [ids])
    return ids


def create_one_by_one(session: Session, channel: str, count: int) -> None:
    """Create messages in one transaction, which is faster, but each with its own wake."""
    session.execute("begin")
    with session.cursor() as cursor:
        cursor.executemany("select message_create(%s, 'x')", [[channel]] * count)
    session.execute("commit")


def publish(session: Session, channels: list[str]) -> None:
    part, name = uuid4(), str(uuid4())
    with session.cursor().copy(
        "copy stage (publication, part, ordinal, channel, contents) from stdin"
    ) as copy:
        for ordinal, channel in enumerate(channels):
            copy.write_row([name, part, ordinal, channel, [b"x"]])
    published = value(
        session, "select created from message_publish(%s, array[%s], array[%s])", name, part, len(channels)
    )
    assert published == len(channels)


def test_turns_that_are_due_without_messages_do_not_hide_others(connect: Connect) -> None:
    """Thirty channels are due at the same time, and the messages of all but the last are cancelled."""
    producer, worker = connect(), connect()
    at = value(producer, "select to_epoch(clock_timestamp())") + 3000
    ids = [create(producer, f"channel {n}", at=at + n)[0] for n in range(30)]
    while ask(worker, 100).outcome != "empty":
        pass
    producer.execute("select * from message_cancel(%s)", [ids[:-1]])
    time.sleep(3.1)
    pretend_expensive_scan(worker, 0.125)
    for _ in range(10):
        answer = ask(worker)
        assert answer.outcome != "empty"
        if answer.leased:
            break
    assert [one.id for one in answer.leased] == ids[-1:]


def test_wakes_of_many_locked_channels_do_not_hide_other_channels(connect: Connect) -> None:
    """There are more of them than a call for one message looks at."""
    holder, producer, worker = connect(), connect(), connect()
    names = [f"locked {n}" for n in range(100)]
    create_in(producer, names)
    holder.execute("begin")
    assert len(dequeue(holder, 100)) == 100
    create_in(producer, names)
    ids = create(producer, "other")
    assert [one.id for one in work_until(worker, lambda worked: len(worked) == 1)] == ids
    holder.execute("rollback")
