"""Exact counts: by one session at a time, rarely, with their age, and never for longer than allowed."""

import pytest

from tests.sql.conftest import Login, Open
from tests.sql.session import Session

COUNTS = "channels, waiting, leased, dead, unfolded_wakes, history_overflow"


def make_due(queue: Session, took_ms: int = 0) -> None:
    queue.run("update exact_count set begun_at = begun_at - interval '1 minute', took_ms = %s", took_ms)


def test_counts_are_exact_and_are_kept_for_a_while(queue: Session) -> None:
    assert queue.rows(f"select {COUNTS}, age_s from queue_count(false)") == [(None,) * 7]
    queue.fill("a", 3)
    queue.bury(queue.take(2)[:1])
    counted = queue.rows(f"select {COUNTS} from queue_count()")[0]
    assert counted[:4] == (1, 1, 1, 1)
    queue.fill("b", 5)
    assert queue.rows(f"select {COUNTS} from queue_count()") == [counted]
    assert 0 <= queue.ask("select age_s from queue_count()") < 60
    make_due(queue)
    assert queue.rows("select channels, waiting from queue_count(false)") == [(1, 1)]
    assert queue.rows("select channels, waiting from queue_count()") == [(2, 6)]


def test_the_next_count_is_forty_times_the_cost_of_the_last_away(queue: Session) -> None:
    queue.run("select queue_count()")
    queue.fill("a", 3)
    for took_ms, waiting in ((1_600, 0), (1_400, 3)):
        make_due(queue, took_ms)
        assert queue.ask("select waiting from queue_count()") == waiting
        queue.run("update exact_count set begun_at = clock_timestamp()")


def test_one_session_counts_and_the_others_do_not_wait(queue: Session, session: Open) -> None:
    queue.run("select queue_count()")
    make_due(queue)
    holder, other = session(autocommit=False), session()
    queue.fill("a", 3)
    assert holder.ask("select waiting from queue_count()") == 3
    other.run("set lock_timeout = '2s'")
    assert other.ask("select waiting from queue_count()") == 0
    holder.connection.commit()
    assert other.ask("select waiting from queue_count()") == 3


@pytest.mark.broken_on_purpose
def test_a_count_that_takes_too_long_is_not_tried_again_at_once(queue: Session) -> None:
    """Counting is made slow, and the session has a time limit."""
    queue.fill("a", 1)
    queue.run("select queue_count()")
    queue.fill("a", 1)
    make_due(queue)
    definition = queue.ask("select pg_get_functiondef('queue_status'::regproc)")
    queue.run(
        definition.replace("select (select count(*) from channel)", "select pg_sleep(60)::text::bigint")
    )
    queue.run("set statement_timeout = '300ms'")
    assert queue.ask("select waiting from queue_count()") == 1
    took_ms, is_recent = queue.rows(
        "select took_ms, begun_at > clock_timestamp() - interval '5 s' from exact_count"
    )[0]
    assert took_ms >= 250
    assert is_recent
    # At once, because 40 times as long must pass first.
    assert queue.ask("select waiting from queue_count()") == 1
    assert queue.ask("select took_ms from exact_count") == took_ms
    queue.run("set statement_timeout = 0")
    queue.run(definition)


def test_a_reader_and_a_read_only_transaction_may_ask(queue: Session, login: Login) -> None:
    queue.fill("a", 2)
    reader = login("reader")
    with reader.connection.transaction():
        reader.run("set transaction read only")
        assert reader.ask("select waiting from queue_count()") is None
    assert reader.ask("select waiting from queue_count()") == 2
    with reader.connection.transaction():
        reader.run("set transaction read only")
        assert reader.ask("select waiting from queue_count()") == 2
