"""A24: producers notify while a worker may be asleep, and only then."""

import time
from collections.abc import Callable

import psycopg
import pytest

from lonnymq.model.acknowledge import ACTIONS
from tests.sql.conftest import Open
from tests.sql.session import Session


class Listener:
    def __init__(self, session: Session) -> None:
        self._session = session
        event = session.ask("select queue_event()")
        session.run(f'listen "{event}"')

    def count(self) -> int:
        """Return how many notifications have arrived since the last call."""
        self._session.run("select 1")
        return len(list(self._session.connection.notifies(timeout=0.05)))


@pytest.fixture
def listener(session: Open) -> Listener:
    return Listener(session())


def register_sleeper(queue: Session, worker: str = "w1", for_ms: int = 60_000) -> None:
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


def test_there_are_no_notifications_while_no_worker_sleeps(queue: Session, listener: Listener) -> None:
    for waking in WAKING.values():
        waking(queue)
    assert listener.count() == 0


@pytest.mark.parametrize("name", WAKING)
def test_each_call_notifies_once_while_a_worker_sleeps(queue: Session, listener: Listener, name: str) -> None:
    register_sleeper(queue)
    WAKING[name](queue)
    assert listener.count() == 1


@pytest.mark.parametrize("ending", [action.name for action in ACTIONS])
def test_every_acknowledgement_that_frees_a_cap_notifies(
    queue: Session, listener: Listener, ending: str
) -> None:
    queue.set("a", max_concurrency=2)
    queue.fill("a", 4)
    taken = queue.take(2)
    register_sleeper(queue)
    queue.end(f"message_{ending}", taken)
    assert listener.count() == 1


def test_acknowledging_a_cancelled_message_of_a_capped_channel_notifies(
    queue: Session, listener: Listener
) -> None:
    queue.set("a", max_concurrency=1)
    queue.fill("a", 2)
    leased = queue.lease()
    queue.cancel(leased.message_id)
    register_sleeper(queue)
    queue.complete([leased])
    assert listener.count() == 1


def test_a_completion_in_a_channel_without_a_cap_does_not_notify(queue: Session, listener: Listener) -> None:
    queue.fill("a", 2)
    taken = queue.take(2)
    register_sleeper(queue)
    queue.complete(taken)
    assert listener.count() == 0


@pytest.mark.parametrize("ending", ["defer", "give_back"])
def test_a_message_that_is_deferred_or_given_back_notifies(
    queue: Session, listener: Listener, ending: str
) -> None:
    queue.create("a")
    leased = queue.lease()
    register_sleeper(queue)
    queue.end(f"message_{ending}", [leased])
    assert listener.count() == 1


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["message returns", "only frees the cap"])
def test_a_dequeue_that_ends_expired_leases_notifies(
    session: Open, queue: Session, listener: Listener, is_cancelled: bool
) -> None:
    """It may take fewer messages than return, and be busy with them for a long time."""
    queue.set("a", max_concurrency=2)
    queue.fill("a", 4)
    taken = queue.take(2)
    if is_cancelled:
        queue.cancel(*[one.message_id for one in taken])
    queue.expire(taken)
    register_sleeper(queue)
    assert len(session().dequeue(1)) == 1
    assert listener.count() == 1


def test_a_notification_is_sent_at_commit(session: Open, listener: Listener) -> None:
    queue = session(autocommit=False)
    register_sleeper(queue)
    queue.connection.commit()
    queue.create("a")
    queue.create("b")
    assert listener.count() == 0
    queue.connection.commit()
    assert listener.count() == 1
    queue.create("c")
    queue.connection.rollback()
    assert listener.count() == 0


def test_a_registration_expires(queue: Session, listener: Listener) -> None:
    register_sleeper(queue, for_ms=1)
    queue.run("select pg_sleep(0.005)")
    queue.create("a")
    assert listener.count() == 0


def test_a_registration_can_be_cleared(queue: Session, listener: Listener) -> None:
    register_sleeper(queue, "w1")
    register_sleeper(queue, "w2")
    queue.run("select sleeper_clear('w1')")
    queue.create("a")
    assert listener.count() == 1
    queue.run("select sleeper_clear('w2')")
    queue.create("a")
    assert listener.count() == 0


def test_registering_again_replaces_the_old_registrations(queue: Session) -> None:
    for worker in ("w1", "w2", "w3"):
        register_sleeper(queue, worker, 1)
    queue.run("select pg_sleep(0.005)")
    for _ in range(3):
        register_sleeper(queue, "w4")
    assert queue.rows("select worker from sleeper") == [("w4",)]


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_outside_read_committed_a_create_always_notifies(
    session: Open, listener: Listener, level: str
) -> None:
    queue = session(autocommit=False)
    queue.connection.isolation_level = psycopg.IsolationLevel[level]
    queue.create("a")
    queue.connection.commit()
    assert listener.count() == 1


def test_each_queue_has_its_own_notification_channel(queue: Session) -> None:
    from tests import schema

    schema.install(queue.connection, "another queue")
    assert queue.ask("select queue_event()") != queue.ask('select "another queue".queue_event()')


def wait_for_horizon(queue: Session, newest: int) -> None:
    """Other transactions on the server, such as a vacuum, may hold back the horizon for a moment."""
    deadline = time.monotonic() + 20
    while queue.ask("select oldest from queue_horizon()") < newest:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_horizon_shows_when_all_producers_see_a_registration(session: Open) -> None:
    """Rule 5: a transaction from before the registration may not notify. It is below newest."""
    queue, producer = session(), session(autocommit=False)
    producer.create("a")
    register_sleeper(queue)
    newest = queue.ask("select newest from queue_horizon()")
    assert queue.ask("select oldest from queue_horizon()") < newest
    producer.connection.commit()
    wait_for_horizon(queue, newest)


def test_the_horizon_waits_for_a_producer_that_began_meanwhile(session: Open) -> None:
    """The producer's transaction is newer, but looked for sleepers before the registration was committed."""
    queue, producer, listening = session(autocommit=False), session(autocommit=False), session()
    register_sleeper(queue)
    producer.create("a")
    queue.connection.commit()
    newest = listening.ask("select newest from queue_horizon()")
    assert listening.ask("select oldest from queue_horizon()") < newest
    producer.connection.commit()
    wait_for_horizon(listening, newest)


def test_a_registration_blocks_no_other_session(session: Open) -> None:
    queue, other = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    register_sleeper(other, "w1")
    register_sleeper(queue, "w1")
    register_sleeper(queue, "w2")
    queue.run("select sleeper_clear('w1')")
    other.connection.commit()
    # The other session's registration of w1 was not committed when w1 was cleared.
    assert queue.rows("select worker from sleeper order by worker") == [("w1",), ("w2",)]
