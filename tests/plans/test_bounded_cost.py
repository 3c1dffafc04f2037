"""What a call costs, in pages touched, does not depend on the backlog, on idle tenants, or on dead rows."""

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
    """Median pages of each call, in a steady state."""
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


def small(queue: Session) -> Session:
    queue.create_many([f"c{n % 10}" for n in range(300)])
    queue.fill("a", 300)
    queue.complete(queue.take(50))
    return queue


def backlog(queue: Session) -> None:
    queue.run(
        "select count(*) from message_create_many("
        " array_fill('a'::text, array[100000]), array_fill(''::bytea, array[100000]))"
    )


def idle_channels(queue: Session) -> None:
    queue.run(
        "select count(*) from message_create_many("
        " array(select 't' || n from generate_series(1, 5000) n), array_fill(''::bytea, array[5000]))"
    )
    while replies := queue.dequeue(500):
        queue.complete(replies)


def scheduled_messages(queue: Session) -> None:
    queue.run(
        "select count(*) from message_create_many("
        " array_fill('a'::text, array[50000]), array_fill(''::bytea, array[50000]),"
        " p_delays_ms => array_fill(3600000::bigint, array[50000]))"
    )


def others_leases(queue: Session) -> None:
    queue.fill("leased", 5_000)
    queue.take(5_000)


SITUATIONS: list[Callable[[Session], None]] = [backlog, idle_channels, scheduled_messages, others_leases]


def assert_not_much_more(
    now: dict[str, float], before: dict[str, float], times: float = 2, more: float = 40
) -> None:
    worse = {name: (before[name], now[name]) for name in now if now[name] > before[name] * times + more}
    assert worse == {}, f"pages before and now: {worse}"


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.__name__)
def test_calls_touch_no_more_pages_than_in_a_small_queue(
    session: Open, situation: Callable[[Session], None]
) -> None:
    before = cost(small(session()))
    situation(session())
    assert_not_much_more(cost(session()), before)


def test_calls_touch_few_pages_at_all(session: Open) -> None:
    found = cost(small(session()))
    bounds = {
        "create": 60,
        "create_many": 200,
        "dequeue": 700,
        "heartbeat": 200,
        "complete": 200,
        "defer": 400,
    }
    assert {name: count for name, count in found.items() if count > bounds[name]} == {}


def test_a_channel_with_a_size_is_counted_once_per_call(session: Open) -> None:
    """While no worker asks, what waits is counted create by create."""
    queue = session()
    queue.set("bounded", max_size=100_000)
    counts = {}
    for channel in ("bounded", "boundless"):
        create = f"perform message_create('{channel}', 'x')"
        queue.run(f"do $$ begin for n in 1..1000 loop {create}; end loop; end $$")
        many = f"array_fill('{channel}'::text, array[300]), array_fill('x'::bytea, array[300])"
        counts[channel] = pages(queue, f"message_create_many({many})")
    assert counts["bounded"] < 1.5 * counts["boundless"], counts


def test_many_new_channels_or_keys_cost_about_as_much_as_so_many_messages(session: Open) -> None:
    """Ten times as much if each is searched for among all of them."""
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


def test_ending_leases_costs_a_call_the_same_however_many_have_expired(session: Open) -> None:
    queue = session()
    counts = []
    for many in (1_500, 6_000):
        queue.fill("a", many)
        queue.take(many)
        queue.run("update lease set unlock_at = 1")
        counts.append(pages(session(), "message_dequeue(10)"))
    assert counts[1] < 1.5 * counts[0], counts


def test_a_first_look_costs_the_same_however_many_messages_are_scheduled(session: Open) -> None:
    """It asks of some of them whether the clock has stepped back since they were created."""
    queue = session()
    counts = []
    for many in (3_000, 30_000):
        later = queue.epoch_ms() + many * 1_000
        queue.fill("a", many, dequeue_ats=[later + n for n in range(many)])
        assert queue.dequeue() == []
        counts.append(pages(session(), "message_dequeue(10)"))
    assert counts[1] < counts[0] + 30, counts


@pytest.mark.parametrize("channels", [1, 2])
def test_a_message_that_comes_back_does_not_have_all_read_that_was_loaded_with_it(
    session: Open, channels: int
) -> None:
    """What is loaded at once is all of one time, and only ids tell where to stop reading."""
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


def test_dead_rows_under_a_held_snapshot_cost_nothing(session: Open) -> None:
    """A dump, an analytics query, a forgotten psql: 100,000 dead rows in front of the live ones."""
    queue = session()
    queue.create_many([f"t{n}" for n in range(1_000)])
    queue.complete(queue.take(1_000))
    small(queue)
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


def test_dead_wakes_cost_a_worker_nothing_that_only_drains(session: Open) -> None:
    """Nobody creates any more: no live wake comes after the dead ones to show how far they were read."""
    queue = small(session())
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
    """Leave what hours of work leave: versions of turns, folded wakes, ended leases, older than the live."""
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
