"""A24: workers are woken while one may be asleep, and nobody notifies for nothing."""

import time
from collections.abc import Callable

import psycopg
import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session


class Listener:
    def __init__(self, session: Session) -> None:
        self._session = session
        event = session.ask("select queue_event()")
        session.run(f'listen "{event}"')

    def heard(self) -> int:
        """How many notifications have come since the last time."""
        self._session.run("select 1")
        return len(list(self._session.connection.notifies(timeout=0.05)))


@pytest.fixture
def listener(session: Open) -> Listener:
    return Listener(session())


def asleep(queue: Session, worker: str = "w1", for_ms: int = 60_000) -> None:
    queue.run("select sleeper_register(%s, %s)", worker, for_ms)


WAKING: dict[str, Callable[[Session], object]] = {
    "create": lambda queue: queue.create("a"),
    "create with a key": lambda queue: queue.create("a", key="k"),
    "create_many": lambda queue: queue.create_many(["a", "b", "c"] * 100),
    "publish": lambda queue: queue.run("select message_publish('p', array[gen_random_uuid()], '{0}')"),
    "channel_set": lambda queue: queue.set("a", weight=2),
    "channel_resume": lambda queue: queue.run("select channel_resume('a')"),
    "dead_redrive": lambda queue: queue.run("select dead_redrive('{}')"),
}


def test_nobody_is_notified_while_nobody_sleeps(queue: Session, listener: Listener) -> None:
    for waking in WAKING.values():
        waking(queue)
    assert listener.heard() == 0


@pytest.mark.parametrize("name", WAKING)
def test_one_notification_per_call_while_somebody_sleeps(
    queue: Session, listener: Listener, name: str
) -> None:
    asleep(queue)
    WAKING[name](queue)
    assert listener.heard() == 1


@pytest.mark.parametrize("ending", ["complete", "defer", "bury", "give_back"])
def test_whatever_makes_room_in_a_capped_channel_wakes(
    queue: Session, listener: Listener, ending: str
) -> None:
    queue.set("a", max_concurrency=2)
    queue.fill("a", 4)
    taken = queue.take(2)
    asleep(queue)
    queue.end(f"message_{ending}", taken)
    assert listener.heard() == 1


def test_a_cancelled_message_whose_worker_stops_makes_room_and_wakes(
    queue: Session, listener: Listener
) -> None:
    queue.set("a", max_concurrency=1)
    queue.fill("a", 2)
    leased = queue.lease()
    queue.cancel(leased.message_id)
    asleep(queue)
    queue.complete([leased])
    assert listener.heard() == 1


def test_completions_in_a_channel_without_a_cap_wake_nobody(queue: Session, listener: Listener) -> None:
    queue.fill("a", 2)
    taken = queue.take(2)
    asleep(queue)
    queue.complete(taken)
    assert listener.heard() == 0


@pytest.mark.parametrize("ending", ["defer", "give_back"])
def test_a_message_that_is_to_be_tried_again_wakes(queue: Session, listener: Listener, ending: str) -> None:
    queue.create("a")
    leased = queue.lease()
    asleep(queue)
    queue.end(f"message_{ending}", [leased])
    assert listener.heard() == 1


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["comes back", "only makes room"])
def test_leases_that_a_dequeue_ends_wake_others(
    session: Open, queue: Session, listener: Listener, is_cancelled: bool
) -> None:
    """It may take less than comes back, and be busy with that for long."""
    queue.set("a", max_concurrency=2)
    queue.fill("a", 4)
    taken = queue.take(2)
    if is_cancelled:
        queue.cancel(*[one.message_id for one in taken])
    queue.expire(taken)
    asleep(queue)
    assert len(session().dequeue(1)) == 1
    assert listener.heard() == 1


def test_a_notification_comes_with_the_commit(session: Open, listener: Listener) -> None:
    queue = session(autocommit=False)
    asleep(queue)
    queue.connection.commit()
    queue.create("a")
    queue.create("b")
    assert listener.heard() == 0
    queue.connection.commit()
    assert listener.heard() == 1
    queue.create("c")
    queue.connection.rollback()
    assert listener.heard() == 0


def test_a_registration_ends_by_itself(queue: Session, listener: Listener) -> None:
    asleep(queue, for_ms=1)
    queue.run("select pg_sleep(0.005)")
    queue.create("a")
    assert listener.heard() == 0


def test_a_registration_is_cleared(queue: Session, listener: Listener) -> None:
    asleep(queue, "w1")
    asleep(queue, "w2")
    queue.run("select sleeper_clear('w1')")
    queue.create("a")
    assert listener.heard() == 1
    queue.run("select sleeper_clear('w2')")
    queue.create("a")
    assert listener.heard() == 0


def test_registering_again_prolongs_and_old_ones_are_swept(queue: Session) -> None:
    for worker in ("w1", "w2", "w3"):
        asleep(queue, worker, 1)
    queue.run("select pg_sleep(0.005)")
    for _ in range(3):
        asleep(queue, "w4")
    assert queue.rows("select worker from sleeper") == [("w4",)]


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_outside_read_committed_it_is_always_notified(session: Open, listener: Listener, level: str) -> None:
    queue = session(autocommit=False)
    queue.connection.isolation_level = psycopg.IsolationLevel[level]
    queue.create("a")
    queue.connection.commit()
    assert listener.heard() == 1


def test_queues_of_one_database_have_their_own_events(queue: Session) -> None:
    from tests import schema

    schema.install(queue.connection, "another queue")
    assert queue.ask("select queue_event()") != queue.ask('select "another queue".queue_event()')


def passes(queue: Session, newest: int) -> None:
    """The horizon is the server's: others' transactions, a vacuum's too, may hold it back for a moment."""
    deadline = time.monotonic() + 20
    while queue.ask("select oldest from queue_horizon()") < newest:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_horizon_tells_when_everybody_has_seen_a_registration(session: Open) -> None:
    """Rule 5: whoever began before the registration may not notify, and is below newest until it ends."""
    queue, producer = session(), session(autocommit=False)
    producer.create("a")
    asleep(queue)
    newest = queue.ask("select newest from queue_horizon()")
    assert queue.ask("select oldest from queue_horizon()") < newest
    producer.connection.commit()
    passes(queue, newest)


def test_who_begins_while_a_registration_is_committed_is_waited_for(session: Open) -> None:
    """Its transaction is the younger one, and looked for sleepers before the registration was committed."""
    queue, producer, listening = session(autocommit=False), session(autocommit=False), session()
    asleep(queue)
    producer.create("a")
    queue.connection.commit()
    newest = listening.ask("select newest from queue_horizon()")
    assert listening.ask("select oldest from queue_horizon()") < newest
    producer.connection.commit()
    passes(listening, newest)


def test_a_registration_makes_nobody_wait(session: Open) -> None:
    queue, other = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    asleep(other, "w1")
    asleep(queue, "w1")
    asleep(queue, "w2")
    queue.run("select sleeper_clear('w1')")
    other.connection.commit()
    # The other session's own registration of w1 was not committed when it was cleared.
    assert queue.rows("select worker from sleeper order by worker") == [("w1",), ("w2",)]
