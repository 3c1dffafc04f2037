"""Every hot statement uses the intended index, on empty, large and wrongly analysed tables."""

from collections.abc import Callable

import pytest

from tests.plans.plan import HOT, can_explain, explained
from tests.plans.work import assert_as_intended, observed
from tests.sql.conftest import Open
from tests.sql.session import Session

pytestmark = pytest.mark.plan


def analyze(queue: Session) -> None:
    for table in (*HOT, "channel", "setting", "dead", "sleeper"):
        queue.run(f"analyze {table}")


def empty(queue: Session) -> None:
    """Nothing at all."""


def giant(queue: Session) -> None:
    """One channel with 50,000 messages."""
    queue.run(
        "select count(*) from message_create_many("
        " array_fill('a'::text, array[50000]), array_fill(''::bytea, array[50000]))"
    )


def tiny(queue: Session) -> None:
    """3,000 channels with a message each, half of them known to dequeue."""
    queue.run(
        "select count(*) from message_create_many("
        " array(select 't' || n from generate_series(1, 3000) n), array_fill(''::bytea, array[3000]))"
    )
    for _ in range(3):
        queue.complete(queue.dequeue_once(500))


def leased(queue: Session) -> None:
    """3,000 leases."""
    queue.fill("leased", 3_000)
    for _ in range(6):
        queue.dequeue_once(500)


def drained(queue: Session) -> None:
    """Full once, of dead rows now."""
    tiny(queue)
    queue.drain(limit=500)


SHAPES: dict[str, Callable[[Session], None]] = {
    shape.__name__: shape for shape in (empty, giant, tiny, leased, drained)
}


@pytest.mark.parametrize("name", SHAPES)
def test_plans_are_as_intended_whatever_was_analysed_when(session: Open, name: str) -> None:
    """Analysed before the data came, by a session that has its plans already and by a new one; then after."""
    first = session()
    analyze(first)
    first.create("a")
    first.drain()
    SHAPES[name](first)
    assert_as_intended(session, first)
    assert_as_intended(session)
    analyze(first)
    assert_as_intended(session, first)
    assert_as_intended(session)


@pytest.mark.parametrize(("analysed", "then"), [("giant", "tiny"), ("tiny", "giant"), ("leased", "giant")])
def test_statistics_of_another_time_do_no_harm(session: Open, analysed: str, then: str) -> None:
    queue = session()
    SHAPES[analysed](queue)
    analyze(queue)
    queue.run("truncate message, lease, wake, turn")
    SHAPES[then](queue)
    assert_as_intended(session)


def test_plans_are_pinned_against_the_callers_settings(session: Open) -> None:
    queue = session(
        options="-c search_path=lonnymq -c enable_indexscan=off -c enable_nestloop=off -c enable_tidscan=off"
        " -c random_page_cost=1000 -c cpu_index_tuple_cost=1000 -c enable_indexonlyscan=off"
        " -c plan_cache_mode=force_custom_plan -c jit_above_cost=0"
    )
    queue.fill("a", 3_000)
    analyze(queue)
    assert_as_intended(session, queue)


def test_capped_limited_and_paused_channels_are_found_by_index(session: Open) -> None:
    queue = session()
    leased(queue)
    for n in range(20):
        queue.set(f"c{n}", max_concurrency=2, release_interval_ms=1, max_size=100_000, max_attempts=3)
    queue.set("a", max_concurrency=40, max_size=1_000_000)
    giant(queue)
    analyze(queue)
    assert_as_intended(session, queue)


def test_history_is_written_without_reading_the_hot_tables_whole(session: Open) -> None:
    queue = session()
    queue.run('select queue_set(\'{"history": "metadata"}\')')
    leased(queue)
    giant(queue)
    analyze(queue)
    assert_as_intended(session, queue)


def test_the_observer_sees_what_it_is_to_see(session: Open) -> None:
    """A test of the test: a sequential scan and a whole index are reported."""
    queue = session()
    queue.fill("a", 100)
    if not can_explain(queue):
        pytest.skip("this server has no auto_explain")
    with explained(queue) as plans:
        queue.run("set enable_indexscan = off; set enable_bitmapscan = off")
        queue.run("select count(*) from message where content = 'y'")
        queue.run("set enable_seqscan = off; set enable_indexscan = on")
        queue.run("select id from message order by id")
        queue.run("set enable_indexscan = off; set enable_bitmapscan = on; set enable_seqscan = off")
        queue.run("select id from message where id < 5")
    faults = " | ".join(plans.faults(most_removed=50))
    for part in (
        "Seq Scan on message",
        "100 rows of message read in vain",
        "whole message_pkey",
        "Bitmap Heap Scan",
    ):
        assert part in faults


def test_all_hot_functions_were_observed(session: Open) -> None:
    queue = session()
    if not can_explain(queue):
        pytest.skip("this server has no auto_explain")
    plans, done = observed(session)
    texts = " ".join(plan["Query Text"] for plan in plans.found)
    for part in (
        "insert into wake",
        "delete from lease",
        "update turn",
        "unlock_at",
        "insert into dead",
        "skip locked",
    ):
        assert part in texts
    assert {"message_order_ix", "wake_lane_ix", "turn_channel_ix", "lease_pkey"} <= set(done.entries)
