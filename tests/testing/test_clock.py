"""The clock that tests can move."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from lonnymq import App, InvalidArgument, LonnyError, Queue, Reason
from lonnymq.testing import Clock, run_until_empty


def test_time_can_be_advanced_and_also_passes_by_itself(lonnymq_clock: Clock) -> None:
    assert abs(lonnymq_clock.now() - datetime.now(UTC)) < timedelta(seconds=10)
    before = lonnymq_clock.now()
    after = lonnymq_clock.advance(days=1, hours=2, minutes=3, seconds=4)
    assert timedelta(days=1, hours=2, minutes=3, seconds=4) <= after - before < timedelta(days=1, hours=2.1)
    assert lonnymq_clock.advance(60) - after >= timedelta(minutes=1)
    noon = datetime(2100, 1, 1, 12, tzinfo=UTC)
    assert timedelta(0) <= lonnymq_clock.move_to(noon) - noon < timedelta(seconds=10)
    assert lonnymq_clock.now() > lonnymq_clock.now() - timedelta(seconds=1)


def test_time_cannot_go_backwards(lonnymq_clock: Clock) -> None:
    with pytest.raises(InvalidArgument, match="by must be not negative"):
        lonnymq_clock.advance(days=-1)
    with pytest.raises(InvalidArgument, match="instant must be at or after the clock's current time"):
        lonnymq_clock.move_to(datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidArgument, match="instant must be an aware datetime"):
        lonnymq_clock.move_to(datetime(2100, 1, 1))


def test_messages_leases_and_views_use_the_moved_clock(lonnymq_queue: Queue, lonnymq_clock: Clock) -> None:
    lonnymq_queue.enqueue("a", 1, delay=timedelta(hours=1))
    assert len(lonnymq_queue.dequeue()) == 0
    assert lonnymq_queue.channel("a").explain().reason is Reason.SCHEDULED
    lonnymq_clock.advance(hours=1)
    assert lonnymq_queue.channel("a").explain().reason is Reason.READY
    status = lonnymq_queue.channel("a").status()
    assert status is not None
    assert status.reason is Reason.READY
    [message] = lonnymq_queue.dequeue(lease_s=60)
    assert abs(message.leased_at - lonnymq_clock.now()) < timedelta(seconds=10)
    lonnymq_clock.advance(minutes=2)
    [again] = lonnymq_queue.dequeue()
    assert again.attempt == 2
    assert message.complete() == "lease_lost"
    lonnymq_queue.enqueue("a", 2, at=lonnymq_clock.now() + timedelta(days=30))
    lonnymq_clock.advance(days=31)
    assert len(lonnymq_queue.dequeue(5)) == 2
    assert lonnymq_queue.check() == []


def test_a_waiting_dequeue_is_woken_when_the_clock_moves(lonnymq_queue: Queue, lonnymq_clock: Clock) -> None:
    lonnymq_queue.enqueue("a", 1, delay=3600)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(lonnymq_queue.dequeue, wait=60)
        while not lonnymq_queue.status().sleepers:
            assert not waiting.done()
            time.sleep(0.01)
        lonnymq_clock.advance(hours=1)
        assert len(waiting.result(30)) == 1


def test_crons_tick_over_simulated_days(lonnymq_queue: Queue, lonnymq_clock: Clock) -> None:
    app = App(lonnymq_queue)
    ticks: list[datetime] = []

    @app.cron("0 3 * * *", channel="nightly", timezone="Europe/Berlin")
    def nightly() -> None:
        ticks.append(lonnymq_clock.now())

    lonnymq_clock.move_to(datetime(2100, 3, 26, 12, tzinfo=UTC))
    assert run_until_empty(app, clock=lonnymq_clock) == []
    attempts = run_until_empty(app, clock=lonnymq_clock, until=timedelta(days=4))
    assert [attempt.handler for attempt in attempts] == ["nightly"] * 4
    # Daylight saving time begins in the night before the 28th.
    assert [tick.astimezone(UTC).hour for tick in ticks] == [2, 1, 1, 1]
    assert lonnymq_clock.now() >= datetime(2100, 3, 30, 12, tzinfo=UTC)


def test_without_a_clock_no_cron_ticks(lonnymq_queue: Queue, lonnymq_clock: Clock) -> None:
    app = App(lonnymq_queue)

    @app.cron("* * * * *", channel="often")
    def often() -> None:
        raise AssertionError

    assert run_until_empty(app) == []
    lonnymq_clock.advance(hours=1)
    assert run_until_empty(app) == []


def test_a_production_queue_has_no_clock_that_can_be_moved(queue: Queue) -> None:
    with pytest.raises(LonnyError, match=r"has no clock that can be moved: install it with Clock.install"):
        Clock(queue).advance(hours=1)
    clock = Clock.install(queue)
    assert clock.advance(hours=1) > datetime.now(UTC)
    assert Clock.install(queue).now() > datetime.now(UTC)
    assert queue.schema_status().state == "current"
