"""The cost of a call in pages touched does not depend on the backlog, idle tenants or dead rows."""

from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from tests.plans.plan import flush_statistics, pages
from tests.sql.conftest import Open
from tests.sql.session import Session

pytestmark = pytest.mark.plan

CALLS = 15


def cost(queue: Session) -> dict[str, float]:
    """Return the median number of pages per call in a steady state."""
    found: dict[str, list[int]] = {
        name: [] for name in ("create", "create_many", "dequeue", "heartbeat", "complete", "defer")
    }
    for n in range(CALLS + 3):
        counts = {"create": pages(queue, "message_create('a', 'x')")}
        many = "message_create_many(array['a','b','c','d'], array_fill('x'::bytea, array[4]))"
        counts["create_many"] = pages(queue, many)
        counts["dequeue"] = pages(queue, "message_dequeue(10)")
        leases = queue.rows(
            "select message_id, token from lease order by leased_at desc, message_id desc limit 10"
        )
        ids, tokens = [row[0] for row in leases], [row[1] for row in leases]
        counts["heartbeat"] = pages(queue, "message_heartbeat(%s::bigint[], %s::bigint[])", ids, tokens)
        counts["complete"] = pages(queue, "message_complete(%s::bigint[], %s::bigint[])", ids[:5], tokens[:5])
        counts["defer"] = pages(queue, "message_defer(%s::bigint[], %s::bigint[])", ids[5:], tokens[5:])
        if n >= 3:
            for name, count in counts.items():
                found[name].append(count)
    return {name: median(counts) for name, counts in found.items()}


def fill_small_queue(queue: Session) -> Session:
    queue.create_many([f"c{n % 10}" for n in range(300)])
    queue.fill("a", 300)
    queue.complete(queue.take(50))
    return queue


def add_backlog(queue: Session) -> None:
    queue.run(
        "select count(*) from message_create_many("
        " array_fill('a'::text, array[100000]), array_fill(''::bytea, array[100000]))"
    )


def add_idle_channels(queue: Session) -> None:
    queue.run(
        "select count(*) from message_create_many("
        " array(select 't' || n from generate_series(1, 5000) n), array_fill(''::bytea, array[5000]))"
    )
    while replies := queue.dequeue(500):
        queue.complete(replies)


def add_scheduled_messages(queue: Session) -> None:
    queue.run(
        "select count(*) from message_create_many("
        " array_fill('a'::text, array[50000]), array_fill(''::bytea, array[50000]),"
        " p_delays_ms => array_fill(3600000::bigint, array[50000]))"
    )


def add_leases(queue: Session) -> None:
    queue.fill("leased", 5_000)
    queue.take(5_000)


SITUATIONS: list[Callable[[Session], None]] = [
    add_backlog,
    add_idle_channels,
    add_scheduled_messages,
    add_leases,
]


def assert_not_much_more(
    now: dict[str, float], before: dict[str, float], times: float = 2, more: float = 40
) -> None:
    worse = {name: (before[name], now[name]) for name in now if now[name] > before[name] * times + more}
    assert worse == {}, f"pages before and now: {worse}"


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.__name__)
def test_calls_touch_no_more_pages_than_in_a_small_queue(
    session: Open, situation: Callable[[Session], None]
) -> None:
    before = cost(fill_small_queue(session()))
    situation(session())
    assert_not_much_more(cost(session()), before)


def test_every_call_touches_few_pages(session: Open) -> None:
    found = cost(fill_small_queue(session()))
    bounds = {
        "create": 60,
        "create_many": 200,
        "dequeue": 700,
        "heartbeat": 200,
        "complete": 200,
        "defer": 400,
    }
    assert {name: count for name, count in found.items() if count > bounds[name]} == {}


def test_create_many_counts_a_channel_with_max_size_once(session: Open) -> None:
    """While no worker dequeues, every create adds a wake that must be counted."""
    queue = session()
    queue.set("bounded", max_size=100_000)
    counts = {}
    for channel in ("bounded", "boundless"):
        create = f"perform message_create('{channel}', 'x')"
        queue.run(f"do $$ begin for n in 1..1000 loop {create}; end loop; end $$")
        many = f"array_fill('{channel}'::text, array[300]), array_fill('x'::bytea, array[300])"
        counts[channel] = pages(queue, f"message_create_many({many})")
    assert counts["bounded"] < 1.5 * counts["boundless"], counts


def test_new_channels_and_keys_cost_about_as_much_as_messages(session: Open) -> None:
    """It would be ten times as much if each of them were searched for among all."""
    queue = session()
    spent = Path(f"/proc/{queue.connection.info.backend_pid}/schedstat")
    if not spent.exists():
        pytest.skip("needs a server on this machine, and Linux, to ask for its processor time")

    def cost(channel: str, key: str) -> int:
        each = "from generate_series(1, 16000) n"
        before = int(spent.read_text().split()[0])
        queue.run(
            f"select count(*) from message_create_many(array(select {channel} {each}),"
            f" array(select 'x'::bytea {each}), p_keys => array(select {key} {each}))"
        )
        return int(spent.read_text().split()[0]) - before

    plain = cost("'a'::text", "null::text")
    assert cost("'new ' || n", "null::text") < 4 * plain
    assert cost("'a'::text", "'key ' || greatest(n, 2)") < 4 * plain
    assert queue.ask("select count(*) from message") == 16000 * 2 + 15999


def test_the_cost_of_ending_leases_does_not_depend_on_their_number(session: Open) -> None:
    queue = session()
    counts = []
    for many in (1_500, 6_000):
        queue.fill("a", many)
        queue.take(many)
        queue.run("update lease set unlock_at = 1")
        counts.append(pages(session(), "message_dequeue(10)"))
    assert counts[1] < 1.5 * counts[0], counts


def test_a_first_dequeue_does_not_depend_on_the_scheduled_messages(session: Open) -> None:
    """It samples them to find out whether the clock has stepped back since they were created."""
    queue = session()
    counts = []
    for many in (3_000, 30_000):
        later = queue.epoch_ms() + many * 1_000
        queue.fill("a", many, dequeue_ats=[later + n for n in range(many)])
        assert queue.dequeue() == []
        counts.append(pages(session(), "message_dequeue(10)"))
    assert counts[1] < counts[0] + 30, counts


@pytest.mark.parametrize("channels", [1, 2])
def test_a_returning_message_does_not_cause_a_scan_of_its_bulk_load(session: Open, channels: int) -> None:
    """All messages of a load have the same time, so only the ids limit what must be read."""
    counts = []
    for many in (500, 60_000):
        queue = session()
        names = [f"{many} {n}" for n in range(channels)]
        for name in names:
            queue.fill(name, many)
        queue.expire(queue.take(10 * channels)[:channels])
        counts.append(pages(session(), f"message_dequeue({channels})"))
        assert queue.ask("select count(*) from lease where attempt = 2") == channels * len(counts)
        for name in names:
            queue.run("select channel_pause(%s)", name)
    assert counts[1] < counts[0] + 60, counts


def test_dead_rows_kept_by_an_open_snapshot_cost_nothing(session: Open) -> None:
    """A snapshot stays open, and 100,000 dead rows precede the live ones."""
    queue = session()
    queue.create_many([f"t{n}" for n in range(1_000)])
    queue.complete(queue.take(1_000))
    fill_small_queue(queue)
    before = cost(queue)
    holder = session(autocommit=False)
    holder.run("set transaction isolation level repeatable read")
    holder.run("select count(*) from turn")
    churn(queue)
    dead = dict(
        queue.rows(
            "select relname, n_dead_tup from pg_stat_user_tables where relname in ('turn', 'wake', 'lease')"
        )
    )
    assert min(dead.values()) >= 90_000, dead
    assert_not_much_more(cost(queue), before, times=3, more=100)
    for table in ("turn", "wake", "lease", "message"):
        queue.run(f"analyze {table}")
    assert_not_much_more(cost(session()), before, times=3, more=100)
    holder.connection.rollback()


def test_dead_wakes_cost_nothing_while_a_queue_is_drained(session: Open) -> None:
    """There are no more creates, so no live wake after the dead ones shows how far they were read."""
    queue = fill_small_queue(session())
    queue.create_many([f"c{n % 10}" for n in range(1_000)])
    queue.take(100)
    drain = "message_dequeue(10)"
    before = {drain: median(pages(queue, drain) for _ in range(CALLS))}
    holder = session(autocommit=False)
    holder.run("set transaction isolation level repeatable read")
    holder.run("select count(*) from turn")
    churn(queue)
    worker = session()
    assert_not_much_more(
        {drain: median(pages(worker, drain) for _ in range(CALLS))}, before, times=3, more=100
    )
    holder.connection.rollback()


def churn(queue: Session) -> None:
    """Leave dead rows as after hours of work: old versions of turns, folded wakes and ended leases."""
    queue.run(
        "do $$ begin for n in 1..100 loop"
        " update turn set version = version + 1,"
        " next_at = case when next_at is not null then last_at + n end;"
        " end loop; end $$"
    )
    queue.run("update turn set version = version + 1, next_at = last_at where next_at is not null")
    queue.run("insert into wake (lane, channel_id) select n % 3, n % 10 from generate_series(1, 100000) n")
    queue.run("delete from wake where channel_id between 0 and 9")
    queue.run(
        "insert into lease (message_id, channel_id, token, attempt, is_capped, is_shared, leased_at,"
        " unlock_at) select -n, n % 10, n, 1, false, false, 0,"
        " (extract(epoch from now()) * 1000000)::bigint - 60000000 + n"
        " from generate_series(1, 100000) n"
    )
    queue.run("delete from lease where message_id < 0")
    flush_statistics(queue)


def test_a_status_touches_few_pages_however_many_results_are_kept(session: Open) -> None:
    queue = session()
    queue.run("vacuum analyze result")
    few = pages(queue, "message_status_of(array[7::bigint])")
    # This session keeps the plan that it made when all tables were empty.
    queue.run(
        "insert into result select n % 10, n, 'completed', '7', 0, 9000000000000000"
        " from generate_series(1, 100000) n"
    )
    for name in ("plan of empty tables", "plan after an analysis"):
        # Ten indexes of two levels, and the row.
        touched = median(pages(queue, "message_status_of(array[7::bigint])") for _ in range(3))
        assert touched <= few + 35, name
        queue.run("analyze result")
