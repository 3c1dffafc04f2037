"""A5 and A6: dequeue_at is the time of a message and its priority."""

import psycopg
import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of


def wait_ms_after_full_scan(queue: Session) -> int:
    """Dequeue until the reply follows from a full scan; return its wait_ms."""
    for _ in range(20):
        (reply,) = queue.dequeue_once()
        assert reply.outcome == "empty"
        assert reply.wait_ms is not None
        if reply.wait_ms > 1_000:
            return reply.wait_ms
        queue.run("select pg_sleep(%s)", reply.wait_ms / 1_000)
    raise AssertionError("no reply with a long wait_ms in 20 calls")


def test_a_scheduled_message_is_released_when_due_and_not_earlier(queue: Session) -> None:
    created = queue.create("a", delay_ms=150)
    at = queue.ask("select dequeue_at from message")
    (reply,) = queue.dequeue()
    assert reply.message_id == created
    assert at * 1_000 <= reply.leased_at < (at + 10_000) * 1_000


def test_the_wait_lasts_until_the_next_message_is_due(queue: Session) -> None:
    queue.create("later", delay_ms=50_000)
    queue.create("sooner", delay_ms=30_000)
    assert 25_000 < wait_ms_after_full_scan(queue) <= 30_000
    queue.create("soonest", delay_ms=10_000)
    assert 5_000 < wait_ms_after_full_scan(queue) <= 10_000


def test_the_wait_is_at_most_a_minute(queue: Session) -> None:
    queue.create("a", delay_ms=86_400_000)
    assert wait_ms_after_full_scan(queue) == 60_000


def test_the_wait_lasts_no_longer_than_the_next_lease(queue: Session) -> None:
    queue.create("a")
    queue.dequeue(1, lease_ms=20_000)
    assert 15_000 < wait_ms_after_full_scan(queue) <= 20_000


def test_the_wait_is_right_for_another_session(session: Open) -> None:
    first, second = session(), session()
    assert wait_ms_after_full_scan(second) == 60_000
    first.create("a", delay_ms=20_000)
    assert first.dequeue_once()[0].outcome == "empty"
    assert 15_000 < wait_ms_after_full_scan(second) <= 20_000


def test_the_message_is_due_exactly_after_the_wait(queue: Session) -> None:
    """The wait is neither so short that another one follows needlessly, nor too long."""
    created = queue.create("a", delay_ms=1_200)
    queue.dequeue_once()
    (reply,) = queue.dequeue_once()
    while reply.outcome == "empty":
        assert reply.wait_ms is not None
        queue.run("select pg_sleep(%s)", reply.wait_ms / 1_000)
        (reply,) = queue.dequeue_once()
    assert reply.message_id == created
    assert reply.leased_at < reply.dequeue_at * 1_000 + 10_000_000


def test_a_scheduled_message_does_not_block_due_messages(queue: Session) -> None:
    queue.create("a", delay_ms=60_000)
    due = queue.create("a")
    assert ids_of(queue.take(5)) == [due]


def test_an_earlier_message_moves_a_scheduled_channel_forward(queue: Session) -> None:
    queue.create("a", delay_ms=60_000)
    assert queue.dequeue() == []
    due = queue.create("a")
    assert ids_of(queue.dequeue()) == [due]


def test_past_zero_and_negative_times_are_released_first(queue: Session) -> None:
    ats = [None, 0, -1, 1, -9_000_000_000_000_000, 1_000_000_000_000, -500]
    created = {queue.create("a", dequeue_at=at): at for at in ats}
    order = [created[one] for one in ids_of(queue.take(10))]
    assert order == [-9_000_000_000_000_000, -500, -1, 0, 1, 1_000_000_000_000, None]


def test_a_message_with_a_priority_overtakes_a_backlog(queue: Session) -> None:
    queue.fill("a", 500)
    queue.complete(queue.take(100))
    urgent = queue.create("a", dequeue_at=-10)
    assert ids_of(queue.take(1)) == [urgent]


def test_the_largest_dequeue_at_and_delay_are_accepted(queue: Session) -> None:
    queue.create("a", dequeue_at=9_000_000_000_000_000)
    queue.create("a", delay_ms=3_155_760_000_000)
    assert wait_ms_after_full_scan(queue) == 60_000


def test_a_delay_counts_from_the_call_not_from_the_transaction_start(queue: Session) -> None:
    with queue.connection.transaction():
        queue.run("select pg_sleep(0.05)")
        queue.create("a", delay_ms=0)
        queue.fill("a", 1, delays_ms=[0])
        early = queue.ask("select min(dequeue_at) - to_epoch(now()) from message")
    assert early >= 50


EPOCHS = {
    "1970-01-01 00:00:00+00": 0,
    "1970-01-01 00:00:00.001+00": 1,
    "1970-01-01 00:00:00.0019+00": 1,
    "1969-12-31 23:59:59.999+00": -1,
    "1969-12-31 23:59:59.9999+00": -1,
    "1969-12-31 23:59:59.9985+00": -2,
    "1969-07-20 20:17:40+00": -14_182_940_000,
    "2024-02-29 23:59:59.999999+00": 1_709_251_199_999,
    "2024-03-01 00:00:00+00": 1_709_251_200_000,
    "2024-03-01 00:01:00+05:30": 1_709_231_460_000,
    "0001-01-01 00:00:00+00": -62_135_596_800_000,
    "4713-01-01 00:00:00+00 BC": -210_863_520_000_000,
}


def test_to_epoch_rounds_down_to_milliseconds(queue: Session) -> None:
    found = {instant: queue.ask("select to_epoch(%s)", instant) for instant in EPOCHS}
    assert found == EPOCHS


def test_to_epoch_is_monotonic_across_minutes(queue: Session) -> None:
    steps = queue.ask(
        "select array_agg(distinct e - p) from ("
        " select to_epoch(t) as e, lag(to_epoch(t)) over (order by t) as p"
        " from generate_series(timestamptz '2024-12-31 23:58:30+00', '2025-01-01 00:01:30+00', '100 ms') t) s"
        " where p is not null"
    )
    assert steps == [100]


def test_to_epoch_does_not_depend_on_the_time_zone(queue: Session) -> None:
    for zone in ("UTC", "America/St_Johns", "Asia/Kathmandu"):
        queue.run("select set_config('timezone', %s, false)", zone)
        assert queue.ask("select to_epoch('2024-03-10 12:00:00.5+00')") == 1_710_072_000_500


def test_to_epoch_refuses_infinity(queue: Session) -> None:
    for instant in ("infinity", "-infinity"):
        with pytest.raises(psycopg.Error) as raised:
            queue.run("select to_epoch(%s)", instant)
        assert raised.value.sqlstate == "LQ001"
        assert "infinity" in str(raised.value)


def test_to_epoch_of_null_is_null(queue: Session) -> None:
    assert queue.ask("select to_epoch(null)") is None
