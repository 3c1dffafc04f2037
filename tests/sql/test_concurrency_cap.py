"""A8: max_concurrency is exact, whatever happens to the leases."""

from collections.abc import Callable

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Reply, Session, ids_of

End = Callable[[Session, list[Reply]], object]

ENDINGS: dict[str, End] = {
    "complete": lambda queue, leases: queue.complete(leases),
    "defer": lambda queue, leases: queue.defer(leases),
    "defer with a delay": lambda queue, leases: queue.defer(leases, delay_ms=60_000),
    "bury": lambda queue, leases: queue.bury(leases, "x"),
    "give_back": lambda queue, leases: queue.give_back(leases),
    "expiry": lambda queue, leases: queue.expire(leases),
    "cancel and complete": lambda queue, leases: (queue.cancel(*ids_of(leases)), queue.complete(leases)),
    "cancel and give_back": lambda queue, leases: (queue.cancel(*ids_of(leases)), queue.give_back(leases)),
    "cancel and expiry": lambda queue, leases: (queue.cancel(*ids_of(leases)), queue.expire(leases)),
    "cancel key": lambda queue, leases: (
        [queue.run("select message_cancel_key('a', %s)", one.key) for one in leases],
        queue.defer(leases),
    ),
    "last attempt": lambda queue, leases: (
        queue.run("update message set max_attempts = 1"),
        queue.defer(leases),
    ),
}


def fill_capped_channel(queue: Session, cap: int, messages: int = 20) -> None:
    queue.set("a", max_concurrency=cap)
    queue.fill("a", messages, keys=[f"k{n}" for n in range(messages)])


def count_leases(queue: Session) -> int:
    count: int = queue.ask("select count(*) from lease")
    return count


@pytest.mark.parametrize("limit", [1, 3, 4, 10, 500])
def test_a_cap_is_exact_at_every_limit(queue: Session, limit: int) -> None:
    fill_capped_channel(queue, 4)
    found: list[Reply] = []
    while replies := queue.dequeue(limit):
        found += replies
    assert len(found) == 4
    assert count_leases(queue) == 4


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_end_of_a_lease_allows_exactly_one_more(queue: Session, ending: str) -> None:
    fill_capped_channel(queue, 3)
    taken = queue.take(10)
    assert len(taken) == 3
    assert queue.take(10) == []
    ENDINGS[ending](queue, taken[:2])
    assert len(queue.take(10)) == 2
    assert count_leases(queue) == 3
    assert queue.take(10) == []


def test_a_capped_channel_drains_completely(queue: Session) -> None:
    fill_capped_channel(queue, 3, messages=50)
    assert len(queue.drain(limit=10)) == 50


def test_a_cap_of_one_serialises_a_channel_in_order(queue: Session) -> None:
    queue.set("a", max_concurrency=1)
    created = queue.fill("a", 10)
    assert ids_of(queue.drain(limit=10)) == created


def test_several_sessions_share_one_cap(session: Open) -> None:
    sessions = [session() for _ in range(4)]
    fill_capped_channel(sessions[0], 5)
    found = [one for session in sessions for one in session.dequeue(3)]
    assert len(found) == 5


def test_a_cap_set_while_messages_are_leased_counts_them(queue: Session) -> None:
    queue.fill("a", 20)
    taken = queue.take(6)
    queue.set("a", max_concurrency=4)
    assert queue.take(10) == []
    queue.complete(taken[:2])
    assert queue.take(10) == []
    queue.complete(taken[2:3])
    assert len(queue.take(10)) == 1
    assert count_leases(queue) == 4


def test_a_cap_that_is_set_before_the_first_use_holds(queue: Session) -> None:
    fill_capped_channel(queue, 2)
    assert len(queue.take(10)) == 2


def test_a_lowered_cap_waits_for_leases_to_end(queue: Session) -> None:
    fill_capped_channel(queue, 5)
    taken = queue.take(10)
    queue.set("a", max_concurrency=2)
    queue.complete(taken[:3])
    assert queue.take(10) == []
    queue.complete(taken[3:4])
    assert len(queue.take(10)) == 1
    assert count_leases(queue) == 2


def test_a_raised_cap_takes_effect_at_once(queue: Session) -> None:
    fill_capped_channel(queue, 2)
    queue.take(10)
    queue.set("a", max_concurrency=5)
    assert len(queue.take(10)) == 3


def test_a_removed_cap_releases_all_messages(queue: Session) -> None:
    fill_capped_channel(queue, 2)
    queue.take(10)
    queue.set("a", max_concurrency=None)
    assert len(queue.take(30)) == 18


def test_a_cap_removed_and_set_again_counts_everything_leased(queue: Session) -> None:
    fill_capped_channel(queue, 2)
    first = queue.take(10)
    queue.set("a", max_concurrency=None)
    second = queue.take(3)
    queue.set("a", max_concurrency=4)
    assert count_leases(queue) == 5
    assert queue.take(10) == []
    queue.complete([first[0], second[0]])
    assert len(queue.take(10)) == 1
    assert count_leases(queue) == 4


def test_completions_from_before_the_cap_that_commit_later_free_it(session: Open) -> None:
    """They are uncommitted while the cap is set and a dequeue has seen it; they must still free the cap."""
    queue, completer = session(), session(autocommit=False)
    queue.fill("a", 10)
    taken = queue.take(3)
    completer.complete(taken)
    queue.set("a", max_concurrency=3)
    assert queue.dequeue_once(10)[0].outcome != "leased"
    completer.connection.commit()
    assert len(queue.dequeue(10)) == 3
    assert count_leases(queue) == 3


@pytest.mark.parametrize("ending", ["defer", "bury", "give_back"])
def test_other_acknowledgements_from_before_the_cap_free_it_too(session: Open, ending: str) -> None:
    queue, other = session(), session(autocommit=False)
    queue.fill("a", 10)
    taken = queue.take(2)
    ENDINGS[ending](other, taken)
    queue.set("a", max_concurrency=2)
    assert queue.dequeue_once(10)[0].outcome != "leased"
    other.connection.commit()
    assert len(queue.take(10)) == 2
    assert count_leases(queue) == 2


def test_an_uncommitted_completion_still_counts_towards_the_cap(session: Open) -> None:
    queue, completer = session(), session(autocommit=False)
    fill_capped_channel(queue, 2)
    taken = queue.take(2)
    completer.complete(taken[:1])
    assert queue.take(10) == []
    completer.connection.rollback()
    assert queue.take(10) == []
    assert queue.complete(taken) == ["completed"] * 2
    assert len(queue.take(10)) == 2


def test_a_dequeue_that_is_rolled_back_does_not_count(queue: Session) -> None:
    fill_capped_channel(queue, 2)
    with queue.connection.transaction(force_rollback=True):
        assert len(queue.take(2)) == 2
    assert len(queue.take(10)) == 2


def test_a_heartbeat_still_counts_towards_the_cap(queue: Session) -> None:
    fill_capped_channel(queue, 1)
    taken = queue.take(1, lease_ms=60_000)
    queue.heartbeat(taken, 60_000)
    assert queue.take(1) == []


def test_a_cancelled_message_counts_until_its_worker_acknowledges_it(queue: Session) -> None:
    fill_capped_channel(queue, 1)
    taken = queue.take(1)
    queue.cancel(taken[0].message_id)
    assert queue.heartbeat(taken) == ["cancelled"]
    assert queue.take(1) == []
    assert queue.complete(taken) == ["cancelled"]
    assert len(queue.take(1)) == 1


def test_a_parked_channel_does_not_hide_others(queue: Session) -> None:
    fill_capped_channel(queue, 1, messages=50)
    queue.fill("b", 5)
    assert sorted(one.channel for one in queue.take(20)) == ["a"] + ["b"] * 5


def test_the_share_of_a_full_channel_goes_to_the_others(queue: Session) -> None:
    fill_capped_channel(queue, 2, messages=50)
    queue.fill("b", 50)
    assert len(queue.take(30)) == 30


def test_new_messages_do_not_exceed_the_cap_of_a_parked_channel(queue: Session) -> None:
    fill_capped_channel(queue, 2)
    queue.take(2)
    for _ in range(3):
        queue.create("a", dequeue_at=-1)
        assert queue.take(5) == []
    assert count_leases(queue) == 2
