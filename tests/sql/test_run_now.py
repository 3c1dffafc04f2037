"""A scheduled message is made due now, within the limits of its channel."""

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of

HOUR_MS = 3_600_000


def run_now(queue: Session, *ids: int) -> list[str]:
    return [row[1] for row in queue.rows("select * from message_run_now(%s)", list(ids))]


def test_a_scheduled_message_is_released_at_once_and_once(queue: Session) -> None:
    ids = [queue.create("a", delay_ms=HOUR_MS) for _ in range(3)]
    assert queue.take(3) == []
    assert run_now(queue, ids[1], ids[2]) == ["due", "due"]
    assert ids_of(queue.drain()) == ids[1:]
    assert queue.ask("select count(*) from message") == 1


def test_it_takes_its_place_among_those_that_wait(queue: Session) -> None:
    """Messages that have waited longer go first; those that are due later do not."""
    early = queue.fill("a", 2)
    scheduled = queue.create("a", delay_ms=HOUR_MS)
    assert run_now(queue, scheduled) == ["due"]
    queue.run("select pg_sleep(0.002)")
    late = queue.fill("a", 2)
    assert ids_of(queue.drain(limit=1)) == [*early, scheduled, *late]


@pytest.mark.parametrize(
    "policy", [{"is_paused": True}, {"max_concurrency": 1}, {"release_interval_ms": HOUR_MS}], ids=str
)
def test_the_limits_of_its_channel_still_apply(queue: Session, policy: dict[str, int]) -> None:
    queue.create("a")
    scheduled = queue.create("a", delay_ms=HOUR_MS)
    queue.set("a", **{name: value for name, value in policy.items() if name != "is_paused"})
    (held,) = queue.take(1)
    queue.set("a", **policy)
    assert run_now(queue, scheduled) == ["due"]
    assert queue.take(1) == []
    queue.complete([held])
    queue.set("a", is_paused=False, max_concurrency=None, release_interval_ms=None)
    assert ids_of(queue.take(1)) == [scheduled]


def test_messages_that_cannot_be_hastened_are_left_alone(queue: Session, session: Open) -> None:
    waiting, leased, deferred = (queue.create("a") for _ in range(3))
    (first, second) = queue.take(2)
    assert (first.message_id, second.message_id) == (waiting, leased)
    queue.defer([first], HOUR_MS)
    assert run_now(queue, waiting, leased, deferred, 10**15) == ["due", "leased", "due", "unknown"]
    assert ids_of(queue.take(3)) == [deferred, waiting]
    # Another transaction has it locked.
    locked = queue.create("b", delay_ms=HOUR_MS)
    holder = session(autocommit=False)
    holder.run("select from message where id = %s for update", locked)
    assert run_now(queue, locked) == ["busy"]
    holder.connection.rollback()
    assert run_now(queue, locked, locked) == ["due", "due"]


def test_a_worker_that_sleeps_is_woken(queue: Session, session: Open) -> None:
    scheduled = queue.create("a", delay_ms=HOUR_MS)
    sleeper = session()
    sleeper.run(f'listen "{queue.ask("select queue_event()")}"')
    sleeper.run("select sleeper_register('w', 30000)")
    run_now(queue, scheduled)
    assert list(sleeper.connection.notifies(timeout=10, stop_after=1)) != []


def test_the_counts_do_not_change(queue: Session) -> None:
    ids = [queue.create(channel, delay_ms=HOUR_MS) for channel in ("a", "b", "a")]
    queue.take(1)
    before = queue.ask("select waiting from queue_status()")
    run_now(queue, *ids)
    assert queue.ask("select waiting from queue_status()") == before == 3
    queue.take(2)
    assert queue.rows("select waiting, leased from queue_status()") == [(1, 2)]
