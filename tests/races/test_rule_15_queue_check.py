"""Rule 15: queue_check() reports and repairs every broken invariant, and has no false alarms under load."""

import threading
import time
from uuid import uuid4

import pytest

from tests.conftest import Connect
from tests.races.creation_lock import stop_at_creation_lock
from tests.races.sessions import Session, check, complete, create, create_in, dequeue, drain, end, value

pytestmark = pytest.mark.race


DAMAGES = [
    "update turn set in_flight = in_flight + 1",
    "update turn set in_flight = in_flight - 1",
    "delete from wake",
    "delete from turn",
    "update turn set next_at = null; delete from wake",
    "update turn set next_at = 9000000000000000000; delete from wake",
    "update turn set mark_at = 9000000000000000, late_at = null; delete from wake",
    "insert into turn (channel_id, version) select channel_id, version + 1 from turn limit 1",
    "delete from lease where message_id = (select min(message_id) from lease)",
    "update turn set mark_at = -1, mark_id = 0",
    "delete from message where id = (select max(id) from message)",
]


@pytest.mark.parametrize("damages", [DAMAGES, ["delete from channel"]], ids=["many", "no channel"])
def test_every_kind_of_damage_is_reported_and_repaired(connect: Connect, damages: list[str]) -> None:
    session = connect()
    for damage in damages:
        session.execute("""select channel_set('capped', '{"max_concurrency": 2}')""")
        for channel in ("capped", "free"):
            create(session, channel, 5)
        held = dequeue(session, 4)
        assert len(held) == 4
        create(session, "free")
        assert check(session) == []
        session.execute(damage)
        assert check(session) != [], damage
        session.execute("select count(*) from queue_check(true)")
        assert check(session) == [], damage
        end(session, "complete", held)
        session.execute("update lease set unlock_at = 0")
        drain(session)
        assert value(session, "select count(*) from message") == 0, damage


@pytest.mark.parametrize("is_repairing", [False, True])
def test_checks_and_repairs_under_load_report_and_break_nothing(connect: Connect, is_repairing: bool) -> None:
    checker, sessions = connect(), [connect() for _ in range(3)]
    checker.execute("""select channel_set('channel 1', '{"max_concurrency": 2}')""")
    is_over = threading.Event()
    problems: list[object] = []
    worked: list[int] = []

    def look() -> None:
        while not is_over.is_set():
            found = checker.execute("select * from queue_check(%s)", [is_repairing]).fetchall()
            problems.extend(found)
            over = value(
                checker,
                "select count(*) from lease join channel c on c.id = channel_id where max_concurrency = 2",
            )
            if over > 2:
                problems.append(f"{over} leases of 2")

    def work(session: Session, seed: int) -> None:
        for n in range(150):
            create(session, f"channel {(n + seed) % 4}", 3)
            leased = dequeue(session, 4)
            if n % 5 == 0:
                end(session, "give_back", leased)
            else:
                complete(session, leased)
                worked.extend(one.id for one in leased)

    watcher = threading.Thread(target=look)
    workers = [threading.Thread(target=work, args=[session, n]) for n, session in enumerate(sessions)]
    for thread in [watcher, *workers]:
        thread.start()
    for thread in workers:
        thread.join()
    is_over.set()
    watcher.join()
    assert problems == []
    worked += [one.id for one in drain(sessions[0])]
    assert len(worked) == len(set(worked)) == 1350


def test_a_repair_does_not_wait_and_skips_locked_turns(connect: Connect) -> None:
    holder, operator = connect(), connect()
    operator.execute("set lock_timeout = '50ms'")
    create(holder, "a", 2)
    holder.execute("begin")
    assert dequeue(holder)
    create(operator, "a")
    operator.execute("select count(*) from queue_check(true)")
    holder.execute("commit")
    assert len(dequeue(operator, 5)) == 2


def test_a_repair_finds_the_name_of_a_deleted_channel_in_its_wakes(connect: Connect) -> None:
    """A message is created while the channel exists, and commits after the delete, before the repair."""
    creator, operator = connect(), connect()
    operator.execute("select channel_set('a', '{}')")
    dequeue(operator)
    creator.execute("begin")
    create(creator, "a")
    assert value(operator, "select channel_delete('a')") == "deleted"
    creator.execute("commit")
    operator.execute("select count(*) from queue_check(true)")
    assert [one.channel for one in dequeue(operator)] == ["a"]
    assert value(operator, "select channel_set('a', '{}')") == "set"


def test_a_repair_leaves_new_channels_to_dequeue(connect: Connect) -> None:
    """There may be more new channels than creation locks."""
    session = connect()
    create_in(session, [f"new {n}" for n in range(15_000)])
    dequeue(session, 100)
    session.execute("insert into channel (id, name) select channel_id, channel_name from wake limit 10000")
    session.execute("begin")
    session.execute("select count(*) from queue_check(true)")
    unlocked = "select count(*) from (select from creation_lock for update skip locked) one"
    assert value(connect(), unlocked) == 16384
    session.execute("commit")
    assert check(session) == []
    # The turns of channels without messages, which the repair has made due, take some of the eight rounds.
    assert len(dequeue(session, 100)) >= 90


def test_a_repair_and_a_concurrent_dequeue_create_one_turn(connect: Connect) -> None:
    """The repair is stopped after it has found a channel without a turn; then a dequeue inserts the turn."""
    repairer, worker, barrier = connect(), connect(), connect()
    create(worker, "a")
    worker.execute("delete from wake")
    with stop_at_creation_lock(barrier, repairer, lambda: repairer.execute("select queue_check(true)")):
        create(worker, "a")
        (leased,) = dequeue(worker)
    assert value(worker, "select count(*) from turn") == 1
    complete(worker, [leased])
    worker.execute("select queue_check(true)")
    assert len(drain(worker)) == 1
    assert check(worker) == []


@pytest.mark.broken_on_purpose
def test_a_repair_after_the_clock_stepped_back_delays_no_channel(connect: Connect) -> None:
    session = connect()
    create(session, "a", 3)
    assert dequeue(session)
    session.execute("update turn set last_at = last_at + 3600000000, next_at = next_at + 3600000000")
    session.execute("select count(*) from queue_check(true)")
    assert check(session) == []
    assert dequeue(connect())


def test_a_bulk_load_that_is_read_late_is_not_reported(connect: Connect) -> None:
    session, part = connect(), uuid4()
    columns = "publication, part, ordinal, channel, contents"
    with session.cursor().copy(f"copy stage ({columns}) from stdin") as copy:
        for n in range(20):
            copy.write_row(["load", part, n, f"bulk {n}", [b"x"]])
    session.execute("select message_publish('load', array[%s], array[20])", [part])
    time.sleep(1.5)
    assert len(dequeue(session)) == 1
    assert check(session) == []
