"""Every hot statement uses the intended index, on empty, large and wrongly analysed tables."""

from collections.abc import Callable

import pytest

from tests.plans.plan import HOT, can_explain, collect_plans
from tests.plans.work import assert_as_intended, observe
from tests.sql.conftest import Open
from tests.sql.session import Session

pytestmark = pytest.mark.plan


def analyze(queue: Session) -> None:
    for table in (*HOT, "channel", "setting", "dead", "sleeper"):
        queue.run(f"analyze {table}")


def leave_empty(queue: Session) -> None:
    """Leave the queue empty."""


def fill_one_large_channel(queue: Session) -> None:
    """Create 50,000 messages in one channel."""
    queue.run(
        "select count(*) from message_create_many("
        " array_fill('a'::text, array[50000]), array_fill(''::bytea, array[50000]))"
    )


def fill_many_small_channels(queue: Session) -> None:
    """Create a message in each of 3,000 channels; dequeue has seen half of them."""
    queue.run(
        "select count(*) from message_create_many("
        " array(select 't' || n from generate_series(1, 3000) n), array_fill(''::bytea, array[3000]))"
    )
    for _ in range(3):
        queue.complete(queue.dequeue_once(500))


def add_leases(queue: Session) -> None:
    """Take 3,000 leases."""
    queue.fill("leased", 3_000)
    for _ in range(6):
        queue.dequeue_once(500)


def leave_only_dead_rows(queue: Session) -> None:
    """Fill the queue and drain it, which leaves only dead rows."""
    fill_many_small_channels(queue)
    queue.drain(limit=500)


SHAPES: dict[str, Callable[[Session], None]] = {
    shape.__name__: shape
    for shape in (
        leave_empty,
        fill_one_large_channel,
        fill_many_small_channels,
        add_leases,
        leave_only_dead_rows,
    )
}


@pytest.mark.parametrize("name", SHAPES)
def test_plans_are_as_intended_whenever_tables_are_analysed(session: Open, name: str) -> None:
    """Analysed before and after the data arrives, and used by sessions with and without cached plans."""
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


@pytest.mark.parametrize(
    ("analysed", "then"),
    [
        ("fill_one_large_channel", "fill_many_small_channels"),
        ("fill_many_small_channels", "fill_one_large_channel"),
        ("add_leases", "fill_one_large_channel"),
    ],
)
def test_outdated_statistics_do_not_change_the_plans(session: Open, analysed: str, then: str) -> None:
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
    add_leases(queue)
    for n in range(20):
        queue.set(f"c{n}", max_concurrency=2, release_interval_ms=1, max_size=100_000, max_attempts=3)
    queue.set("a", max_concurrency=40, max_size=1_000_000)
    fill_one_large_channel(queue)
    analyze(queue)
    assert_as_intended(session, queue)


def test_writing_history_does_not_scan_the_hot_tables(session: Open) -> None:
    queue = session()
    queue.run('select queue_set(\'{"history": "metadata"}\')')
    add_leases(queue)
    fill_one_large_channel(queue)
    analyze(queue)
    assert_as_intended(session, queue)


def test_unintended_scans_are_detected(session: Open) -> None:
    """Tests the tests: a sequential scan and a full index scan are reported."""
    queue = session()
    queue.fill("a", 100)
    if not can_explain(queue):
        pytest.skip("this server has no auto_explain")
    with collect_plans(queue) as plans:
        queue.run("set enable_indexscan = off; set enable_bitmapscan = off")
        queue.run("select count(*) from message where content = 'y'")
        queue.run("set enable_seqscan = off; set enable_indexscan = on")
        queue.run("select id from message order by id")
        queue.run("set enable_indexscan = off; set enable_bitmapscan = on; set enable_seqscan = off")
        queue.run("select id from message where id < 5")
    violations = " | ".join(plans.violations(max_removed=50))
    for part in (
        "Seq Scan on message",
        "100 rows of message read needlessly",
        "whole message_pkey",
        "Bitmap Heap Scan",
    ):
        assert part in violations


def test_the_plans_of_all_hot_statements_are_collected(session: Open) -> None:
    queue = session()
    if not can_explain(queue):
        pytest.skip("this server has no auto_explain")
    plans, done = observe(session)
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
