"""History is prepared ahead of time by whoever asks first, and nobody waits for it."""

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session
from tests.sql.test_history import drop_partitions, set_history_mode

HOUR_MS = 3_600_000


def prepare_if_due(queue: Session) -> tuple[int, int]:
    ((wait_ms, created),) = queue.rows("select wait_ms, created from history_prepare_if_due()")
    return wait_ms, created


def is_about_an_hour(wait_ms: int) -> bool:
    return 0.9 * HOUR_MS <= wait_ms <= 1.1 * HOUR_MS


def test_the_first_caller_creates_what_is_missing_and_the_others_nothing(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    days = queue.rows("select name from history_partition order by name")
    assert prepare_if_due(queue)[1] == 0
    # The last day of the coming fortnight, as it is missing on the next day.
    queue.run(f"drop table {days[-2][0]}, {days[-1][0]}")
    wait_ms, created = prepare_if_due(queue)
    assert (created, is_about_an_hour(wait_ms)) == (2, True)
    assert queue.rows("select name from history_partition order by name") == days
    assert prepare_if_due(queue)[1] == 0


def test_one_missing_day_at_the_end_is_not_yet_due(queue: Session) -> None:
    """Otherwise each worker would look for it at the same midnight."""
    set_history_mode(queue, "metadata")
    last = queue.ask("select max(name) from history_partition")
    queue.run(f"drop table {last}")
    assert prepare_if_due(queue)[1] == 0


def test_a_gap_between_existing_days_is_filled(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    gap = queue.ask("select name from history_partition order by name offset 4 limit 1")
    queue.run(f"drop table {gap}")
    assert prepare_if_due(queue)[1] == 1


def test_nothing_is_created_while_history_is_off(queue: Session) -> None:
    drop_partitions(queue)
    wait_ms, created = prepare_if_due(queue)
    assert (created, is_about_an_hour(wait_ms)) == (0, True)
    assert queue.ask("select count(*) from history_partition") == 0


def test_the_overflow_is_moved_even_if_history_is_off_again(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    drop_partitions(queue)
    queue.create("a")
    queue.complete([queue.lease()])
    set_history_mode(queue, "off")
    wait_ms, created = prepare_if_due(queue)
    assert (created, is_about_an_hour(wait_ms)) == (1, True)
    assert queue.ask("select count(*) from history") == 1


def test_a_large_overflow_is_moved_in_several_calls(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    drop_partitions(queue)
    queue.create("a")
    queue.complete([queue.lease()])
    queue.run(
        "insert into history_overflow select (jsonb_populate_record(o, jsonb_build_object('id', o.id + g))).*"
        " from history_overflow o, generate_series(1, 14999) g"
    )
    assert queue.ask("select history_prepare(1, 2000)") == 2
    assert queue.ask("select count(*) from history") == 2000
    wait_ms, _ = prepare_if_due(queue)
    assert wait_ms == 1000
    assert queue.ask("select count(*) from history") == 12_000
    assert is_about_an_hour(prepare_if_due(queue)[0])
    assert queue.rows("select count(*), count(distinct id) from history") == [(15_000, 15_000)]


@pytest.mark.parametrize(
    "lock", ["select history_prepare(20)", "lock table history in share update exclusive mode"]
)
def test_a_caller_does_not_wait_for_another_one_but_comes_back_soon(session: Open, lock: str) -> None:
    queue, other = session(), session(autocommit=False)
    set_history_mode(queue, "metadata")
    drop_partitions(queue)
    other.run(lock)
    queue.run("set lock_timeout = '50ms'")
    wait_ms, created = prepare_if_due(queue)
    assert created == 0
    assert 5_000 <= wait_ms <= 10_000
    other.connection.rollback()
    assert prepare_if_due(queue)[1] == 15


def test_attempts_can_end_while_partitions_are_created(session: Open) -> None:
    queue, completer = session(), session(autocommit=False)
    set_history_mode(queue, "metadata")
    drop_partitions(queue)
    queue.fill("a", 3)
    taken = queue.take(3)
    completer.complete(taken[:1])
    queue.run("set lock_timeout = '50ms'")
    with queue.connection.transaction():
        assert prepare_if_due(queue)[1] == 15
        completer.run("set lock_timeout = '50ms'")
        assert completer.complete(taken[1:2]) == ["completed"]
        completer.connection.commit()
    assert queue.complete(taken[2:]) == ["completed"]
    prepare_if_due(queue)
    assert queue.ask("select count(*) from history") == 3
