"""Rule 15: queue_check reports broken invariants and repairs them."""

from collections.abc import Callable

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session

pytestmark = pytest.mark.broken_on_purpose


def fill_busy_queue(queue: Session) -> None:
    """Create ten messages per channel; lease some, complete some, and fold all wakes."""
    queue.set("capped", max_concurrency=4)
    for channel in ("a", "b", "capped"):
        queue.fill(channel, 10)
    taken = queue.take(9)
    queue.complete(taken[:3])
    queue.dequeue_once(1)
    queue.give_back(taken[3:4])
    assert queue.problems() == []


BREAKAGES: dict[str, tuple[str, str]] = {
    "in_flight too high": ("update turn set in_flight = in_flight + 5", "in_flight is wrong"),
    "in_flight too low": ("update turn set in_flight = in_flight - 5", "in_flight is wrong"),
    "waiting too high": ("update turn set waiting = waiting + 7", "waiting is wrong"),
    "waiting too low": ("update turn set waiting = waiting - 70", "waiting is wrong"),
    "parked": ("delete from wake; update turn set next_at = null", "parked although a message waits"),
    "too late": (
        "delete from wake;"
        " update turn set next_at = (extract(epoch from now() + interval '1 hour') * 1000000)::bigint",
        "the turn comes too late",
    ),
    "mark too high": (
        "delete from wake;"
        " update turn set mark_at = 8000000000000000, late_at = null, late_id = null, late_to = null",
        "a message below the mark is forgotten",
    ),
    "mark too low": ("update turn set mark_at = -9000000000000000, mark_id = 0", "a lease is past the mark"),
    "wakes deleted": ("select message_create('a', 'x'); delete from wake", "waiting is wrong"),
    "turns deleted": ("delete from wake; delete from turn", "no turn and no wake"),
    "a turn twice": (
        "insert into turn (channel_id, version) select channel_id, 0 from turn",
        "two turns",
    ),
    "leases deleted": ("delete from lease", "waiting is wrong"),
    "capped leases deleted": ("delete from lease where is_capped", "in_flight is wrong"),
    "messages deleted": ("delete from message where id % 2 = 0", "waiting is wrong"),
    "channels deleted": ("delete from wake; delete from channel", "no channel"),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_invariant_is_reported_and_repaired(queue: Session, name: str) -> None:
    breakage, problem = BREAKAGES[name]
    fill_busy_queue(queue)
    for statement in breakage.split("; "):
        queue.run(statement)
    assert problem in queue.problems()
    queue.problems(repair=True)
    queue.dequeue_once(1)  # recreates deleted turns and channels
    assert queue.problems() == []
    # Everything can be drained, leased messages after their leases end.
    queue.run("update lease set unlock_at = 0")
    live = queue.ask("select count(*) from message")
    assert len(queue.drain()) == live
    assert queue.ask("select count(*) from message") == 0
    assert queue.problems() == []


def test_a_repair_of_a_healthy_queue_changes_nothing(queue: Session) -> None:
    fill_busy_queue(queue)
    assert queue.problems(repair=True) == []
    assert queue.problems() == []
    queue.run("update lease set unlock_at = 0")
    assert len(queue.drain()) == 27


def test_the_report_names_the_channel_and_whether_it_was_repaired(queue: Session) -> None:
    queue.fill("a", 3)
    queue.lease()
    queue.run("update turn set waiting = 50")
    (reported,) = queue.rows("select problem, channel, is_repaired from queue_check()")
    assert reported == ("waiting is wrong", "a", False)
    (repaired,) = queue.rows("select problem, channel, is_repaired from queue_check(true)")
    assert repaired == ("waiting is wrong", "a", True)


def test_a_repaired_problem_is_reported_as_repaired(queue: Session) -> None:
    queue.fill("a", 3)
    queue.lease()
    queue.run("update turn set mark_at = -9000000000000000, mark_id = 0")
    assert queue.rows("select channel, is_repaired from queue_check(true)") == [("a", True)]


def test_a_problem_of_a_locked_turn_is_reported_but_not_repaired(session: Open) -> None:
    queue, other = session(), session(autocommit=False)
    for channel in ("a", "b"):
        queue.fill(channel, 2)
    queue.take(2)
    queue.run("update turn set waiting = 50")
    other.run("select from turn where channel_id = (select id from channel where name = 'b') for update")
    queue.run("set lock_timeout = '50ms'")
    found = queue.rows("select channel, is_repaired from queue_check(true) order by 1")
    assert found == [("a", True), ("b", False)]
    other.connection.rollback()
    assert queue.rows("select channel, is_repaired from queue_check(true)") == [("b", True)]
    assert queue.problems() == []


def test_a_check_without_repair_changes_nothing(queue: Session) -> None:
    fill_busy_queue(queue)
    queue.run("update turn set waiting = 50")
    state = "select array_agg(t order by channel_id) from turn t"
    before = queue.ask(state.replace("array_agg(t ", "array_agg(t::text "))
    queue.problems()
    assert queue.ask(state.replace("array_agg(t ", "array_agg(t::text ")) == before


def test_a_repair_keeps_a_cap_exact(queue: Session) -> None:
    queue.set("a", max_concurrency=3)
    queue.fill("a", 10)
    taken = queue.take(10)
    assert len(taken) == 3
    queue.run("update turn set in_flight = 0")
    queue.problems(repair=True)
    assert queue.take(10) == []
    queue.complete(taken[:1])
    assert len(queue.take(10)) == 1


def test_a_repair_finds_a_forgotten_message_however_old(queue: Session) -> None:
    queue.fill("a", 3, dequeue_ats=[100] * 3)
    queue.drain()
    for _ in range(2):
        queue.create("a", dequeue_at=1)
        queue.run("delete from wake")
    assert queue.take(5) == []
    queue.problems(repair=True)
    assert len(queue.drain()) == 2


@pytest.fixture
def problems_after(queue: Session) -> Callable[[str], list[str]]:
    def problems_after(statement: str) -> list[str]:
        fill_busy_queue(queue)
        queue.run(statement)
        return queue.problems()

    return problems_after


def test_uncapped_leases_must_be_recorded_in_has_uncapped(problems_after: Callable[[str], list[str]]) -> None:
    assert "has_uncapped is wrong" in problems_after("update turn set has_uncapped = false")


def test_a_channel_with_more_leases_than_its_new_cap_is_no_problem(queue: Session) -> None:
    queue.fill("a", 10, dequeue_ats=[1_000] * 10)
    queue.take(5)
    queue.set("a", max_concurrency=3)
    queue.run("update turn set last_at = last_at - 10000000")  # as if ten seconds had passed
    queue.dequeue_once(1)
    assert queue.problems() == []
