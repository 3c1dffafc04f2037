"""What dashboards, alerts and `lonnymq top` read costs no more pages in a large queue than in a small one."""

import pytest

from tests.plans.plan import flush_statistics, pages
from tests.sql.conftest import Open
from tests.sql.session import Session

pytestmark = [pytest.mark.plan, pytest.mark.slow]

# Calls, and how many pages each may touch, whatever the size of the queue.
BOUNDS = {
    "queue_pulse()": 2_500,
    "channel_busiest(20)": 3_000,
    "channel_overdue(20)": 1_500,
    "channel_page('c7', 'c70', 20)": 1_500,
    "channel_explain('c7')": 400,
    "channel_list(array['c7', 'c8'])": 600,
    "queue_tables()": 1_500,
    "cron_overdue()": 400,
    "history_lag()": 400,
    # What the exporter asks for.
    "queue_pulse(1000)": 20_000,
    "message_page()": 700,
    "message_page('c7')": 700,
    "message_page(p_prefix => 'c7')": 8_000,
    "message_page(p_status => 'leased')": 4_000,
    "dead_page()": 100,
    "dead_page('c7')": 200,
    "dead_groups(p_letters => 200)": 1_000,
    "message_page(p_status => 'scheduled')": 4_000,
    "message_outline(array(select i from unnest((message_page()).ids) i))": 2_000,
    "message_attempts(7)": 1_500,
    "audit_page()": 50,
    "cron_list()": 50,
    "history_readers(10000)": 1_500,
    "queue_count(false)": 20,
}
SMALL, LARGE = 2_000, 60_000


def fill(queue: Session, count: int) -> None:
    """Make `count` channels with four messages each, of which some are leased and some are dead letters."""
    for _ in range(4):
        queue.run(
            "select count(*) from message_create_many("
            " array(select 'c' || n from generate_series(1, %s) n), array_fill(''::bytea, array[%s]))",
            count,
            count,
        )
    queue.bury(queue.take(400), "no disk")
    queue.take(400)
    queue.run(
        "insert into dead (message_id, channel, dequeue_at, created_at, buried_at, attempts, content, error)"
        " select -n - %s, 'c' || (n %% 100), 1, 1, n, 1, 'x', 'error ' || n %% 5"
        " from generate_series(1, %s) n",
        10 * count,
        count,
    )
    queue.run(
        "insert into history (message_id, channel_id, outcome, attempt, created_at, dequeue_at, ended_at)"
        " select n, 1, 'completed', 1, 1, 1, floor(extract(epoch from clock_timestamp()) * 1000)"
        " from generate_series(1, %s) n",
        4 * count,
    )
    queue.run(
        "insert into audit (acted_at, actor, role, verb, subject, arguments, outcomes)"
        " select now(), 'a', 'r', 'v', 'c' || n, '{}', '{}' from generate_series(1, %s) n",
        count,
    )
    queue.run(
        "insert into cron (name, expression, timezone, channel, content, catch_up, is_declared, mark_at)"
        " select count || '-' || n, '* * * * *', 'UTC', 'c', 'x', 'all', false, now()"
        " from (values (%s)) v(count), generate_series(1, count / 10) n",
        count,
    )
    flush_statistics(queue)


def cost(queue: Session) -> dict[str, int]:
    return {call: min(pages(queue, call) for _ in range(3)) for call in BOUNDS}


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize("is_analyzed", [True, False])
def test_inspection_touches_no_more_pages_in_a_large_queue(session: Open, is_analyzed: bool) -> None:
    """Dead letters, history, records, crons and a reader of history are inserted directly."""
    queue = session()
    queue.run("select history_prepare(3)")
    queue.run("insert into history_reader (name, xid, id, done_xid, done_id) values ('r', 0, 0, 0, 0)")
    found = {}
    for count in (SMALL, LARGE):
        fill(queue, count)
        if is_analyzed:
            queue.run("vacuum (analyze)")
        # A new session, which has planned nothing yet.
        found[count] = cost(session())
    assert {call: found for call, found in found[LARGE].items() if found > BOUNDS[call]} == {}
    grown = {
        call: (found[SMALL][call], found[LARGE][call])
        for call in BOUNDS
        if found[LARGE][call] > 1.6 * found[SMALL][call] + 150
    }
    assert grown == {}


@pytest.mark.broken_on_purpose
def test_leases_that_vacuum_may_not_remove_are_not_stepped_over_one_by_one(session: Open) -> None:
    queue, old = session(), session()
    for n in range(20):
        queue.create(f"c{n}")
    queue.take(10)
    old.run("begin isolation level repeatable read")
    old.ask("select count(*) from message")
    calls = ("queue_pulse()", "channel_busiest(10)", "message_peek('c7', 10, true, 0)")
    before = {call: pages(queue, call) for call in calls}
    for _ in range(3):
        queue.run(
            "insert into lease"
            " (message_id, channel_id, token, attempt, is_capped, is_shared, leased_at, unlock_at)"
            " select -n, n, n, 1, false, true, n, n from generate_series(1, 40000) n"
        )
        queue.run("delete from lease where message_id < 0")
        flush_statistics(queue)
    queue.run("vacuum lease")
    table = queue.ask("select table_pages('lease')")
    assert table > 1_000
    for call in calls:
        assert pages(queue, call) < before[call] + 1.5 * table
    old.run("rollback")
    queue.run("vacuum lease")
    flush_statistics(queue)
    # The table is as large as before.
    assert queue.ask("select table_pages('lease')") == table
    assert {call: pages(queue, call) for call in calls if pages(queue, call) > before[call] + 100} == {}
    assert queue.ask("select sum(leased) from channel_busiest(20)") == 10
    assert queue.ask("select count(*) from message_peek(null, 100, true, 0)") == 10
    assert (
        queue.ask("select (leased, expired, first_expiry_at > now())::text from queue_pulse()") == "(10,0,t)"
    )
