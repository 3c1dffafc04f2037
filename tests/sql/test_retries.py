"""A14: defer, attempts, state and errors."""

import pytest

from tests.sql.session import Session, ids_of


def test_a_deferred_message_returns_with_its_state(queue: Session) -> None:
    created = queue.create("a", b"work")
    first = queue.lease()
    assert (first.attempt, first.state) == (1, None)
    assert queue.defer([first], state=b"\x00page 2") == ["deferred"]
    second = queue.lease()
    assert (second.message_id, second.attempt, second.state, second.content) == (
        created,
        2,
        b"\x00page 2",
        b"work",
    )


def test_a_state_is_kept_until_it_is_replaced(queue: Session) -> None:
    queue.create("a")
    queue.defer([queue.lease()], state=b"one")
    queue.defer([queue.lease()])
    leased = queue.lease()
    assert leased.state == b"one"
    queue.defer([leased], state=b"")
    assert queue.lease().state == b""


def test_a_deferred_message_waits_for_its_delay(queue: Session) -> None:
    queue.create("a")
    first = queue.lease()
    queue.defer([first], delay_ms=120)
    at = queue.ask("select dequeue_at from message")
    second = queue.lease()
    assert second.leased_at >= at * 1_000 >= first.leased_at + 100_000


def test_each_message_of_a_batch_has_its_own_delay_state_and_error(queue: Session) -> None:
    created = queue.fill("a", 3)
    taken = queue.take(3)
    rows = queue.rows(
        "select outcome from message_defer(%s, %s, %s, %s, %s)",
        ids_of(taken),
        [one.token for one in taken],
        [60_000, None, 0],
        [b"s1", None, b"s3"],
        [None, "e2", "e3"],
    )
    assert rows == [("deferred",)] * 3
    found = queue.rows("select id, state, error, dequeue_at > created_at + 30000 from message order by id")
    assert found == [
        (created[0], b"s1", None, True),
        (created[1], None, "e2", False),
        (created[2], b"s3", "e3", False),
    ]


def test_a_message_is_buried_after_its_max_attempts(queue: Session) -> None:
    created = queue.create("a", b"x", max_attempts=3)
    outcomes = []
    for n in range(3):
        leased = queue.lease()
        assert (leased.attempt, leased.max_attempts) == (n + 1, 3)
        outcomes += queue.defer([leased], state=b"s", error=f"failure {n + 1}")
    assert outcomes == ["deferred", "deferred", "buried"]
    assert queue.dequeue() == []
    assert queue.rows("select message_id, channel, attempts, error, content, state from dead_list()") == [
        (created, "a", 3, "failure 3", b"x", b"s")
    ]


def test_a_message_is_buried_after_its_channels_max_attempts(queue: Session) -> None:
    queue.set("a", max_attempts=2)
    queue.create("a")
    assert queue.defer([queue.lease()]) + queue.defer([queue.lease()]) == ["deferred", "buried"]


@pytest.mark.parametrize(("of_message", "of_channel", "attempts"), [(1, 5, 1), (4, 2, 4)])
def test_a_messages_own_max_attempts_overrides_its_channels(
    queue: Session, of_message: int, of_channel: int, attempts: int
) -> None:
    queue.set("a", max_attempts=of_channel)
    queue.create("a", max_attempts=of_message)
    outcomes = [queue.defer([queue.lease()])[0] for _ in range(attempts)]
    assert outcomes == ["deferred"] * (attempts - 1) + ["buried"]


def test_without_max_attempts_a_message_is_retried_forever(queue: Session) -> None:
    queue.create("a")
    for _ in range(20):
        assert queue.defer([queue.lease()]) == ["deferred"]
    assert queue.lease().attempt == 21


def test_a_lowered_max_attempts_buries_at_the_next_failure(queue: Session) -> None:
    queue.create("a")
    for _ in range(3):
        queue.defer([queue.lease()])
    queue.set("a", max_attempts=1)
    assert queue.defer([queue.lease()]) == ["buried"]


def test_an_expired_lease_spends_an_attempt_and_the_last_one_buries(queue: Session) -> None:
    created = queue.create("a", max_attempts=2)
    for _ in range(2):
        (leased,) = queue.dequeue(1, worker="w7")
        queue.expire([leased])
    assert queue.dequeue() == []
    (dead,) = queue.rows("select message_id, attempts, error from dead_list()")
    assert dead[:2] == (created, 2)
    assert "attempt 2 expired" in dead[2]
    assert "w7" in dead[2]


def test_give_back_spends_no_attempt_and_keeps_the_messages_place(queue: Session) -> None:
    created = queue.fill("a", 3, max_attempts=[1, 1, 1])
    for _ in range(3):
        taken = queue.take(2)
        assert ids_of(taken) == created[:2]
        assert [one.attempt for one in taken] == [1, 1]
        assert queue.give_back(taken) == ["given_back"] * 2
    assert ids_of(queue.take(3)) == created


def test_a_failure_without_an_error_keeps_the_last_error(queue: Session) -> None:
    queue.create("a", max_attempts=2)
    queue.defer([queue.lease()], error="the first")
    assert queue.defer([queue.lease()]) == ["buried"]
    assert queue.ask("select error from dead_list()") == "the first"


def test_a_batch_defers_some_and_buries_others(queue: Session) -> None:
    created = queue.fill("a", 4, max_attempts=[1, 2, None, 1])
    taken = queue.take(4)
    assert queue.defer(taken, error="x") == ["buried", "deferred", "deferred", "buried"]
    assert sorted(row[0] for row in queue.rows("select message_id from dead_list()")) == [
        created[0],
        created[3],
    ]
    assert sorted(ids_of(queue.take(4))) == created[1:3]


def test_a_deferred_message_goes_behind_waiting_messages(queue: Session) -> None:
    created = queue.fill("a", 3)
    first = queue.lease()
    queue.run("select pg_sleep(0.002)")
    queue.defer([first])
    assert ids_of(queue.take(3)) == [created[1], created[2], created[0]]
